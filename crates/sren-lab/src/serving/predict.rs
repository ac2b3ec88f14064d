//! `POST /v1/predict`: classes, orientation and scale of images.

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{ApiError, Code, ErrorBody};
use super::networks::Served;
use super::router::{Client, Shared};
use super::upload::Uploads;
use super::work::Job;
use crate::inference::{Prediction, PreparedImage};

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Classes per image, the most probable first.
    #[serde(default = "one")]
    #[param(default = 1, minimum = 1)]
    top: usize,
}

fn one() -> usize {
    1
}

/// Predictions, in the order of the images.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Predictions {
    /// The name of the model.
    model: String,
    predictions: Vec<Prediction>,
}

/// The values of a query.
pub(super) type Values<T> = Result<Query<T>, axum::extract::rejection::QueryRejection>;

/// The values of a query, or an error of the API.
pub(super) fn values<T>(query: Values<T>) -> Result<T, ApiError> {
    match query {
        Ok(Query(values)) => Ok(values),
        Err(rejection) => Err(ApiError::new(Code::InvalidRequest, rejection.body_text())),
    }
}

/// Predict the class of images
///
/// The body is an image (png, jpeg, webp, bmp, gif, tiff), or multipart/form-data of up to 64 images. If
/// one of them cannot be read, the error names it and there are no predictions.
#[utoipa::path(post, path = "/v1/predict", params(Asked),
    request_body(description = "An image, or several as multipart/form-data", content(
        (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "application/octet-stream"),
        (Vec<u8> = "multipart/form-data"),
    )),
    responses(
        (status = 200, body = Predictions),
        (status = 400, description = "invalid_request, invalid_image", body = ErrorBody),
        (status = 408, description = "timeout", body = ErrorBody),
        (status = 413, description = "body_too_large, image_too_large", body = ErrorBody),
        (status = 415, description = "unsupported_media_type", body = ErrorBody),
        (status = 429, description = "too_many_requests; see Retry-After", body = ErrorBody),
        (status = 503, description = "overloaded; see Retry-After", body = ErrorBody),
    ))]
pub(super) async fn predict(
    State(app): Shared,
    client: Client,
    query: Values<Asked>,
    uploads: Uploads,
) -> Result<Json<Predictions>, ApiError> {
    let Asked { top } = values(query)?;
    if top == 0 {
        return Err(ApiError::new(Code::InvalidRequest, "top: expected at least 1, got 0"));
    }
    let Uploads { images, .. } = uploads;
    let predictions = app.ask(client, images, (top, 1), Job::Predict).await?;
    Ok(Json(Predictions { model: app.networks.served.name.clone(), predictions }))
}

/// The predictions for a batch, each with its number of classes.
pub(super) fn compute(
    served: &Served,
    images: Vec<PreparedImage>,
    top: &[usize],
) -> Result<Vec<Prediction>, ApiError> {
    let most = top.iter().copied().max().unwrap_or(1);
    let images = images.into_iter().map(Ok).collect();
    let predictions = served.predictor.predict_prepared(images, most)?;
    let mut predictions: Vec<Prediction> = predictions.into_iter().collect::<Result<_, _>>()?;
    for (prediction, top) in predictions.iter_mut().zip(top) {
        prediction.top.truncate(*top);
    }
    Ok(predictions)
}
