//! `POST /v1/features`: the feature map of a layer, as a picture or as numbers.

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sren::{FeatureMap, Grid};
use utoipa::{IntoParams, ToSchema};

use super::error::{ApiError, Code, ErrorBody};
use super::networks::Served;
use super::predict::{Values, values};
use super::router::{Client, Shared};
use super::upload::Uploads;
use super::work::Job;
use crate::canvas::Canvas;
use crate::features::{ColourMap, Palette};
use crate::inference::PreparedImage;

/// Side of the picture, in pixels.
const PICTURE: usize = 256;
/// Height, width and channels of a map of numbers.
const SHAPE: HeaderName = HeaderName::from_static("x-feature-shape");
/// Column and row of its first position and distance of positions, in pixels of what the network sees.
const GRID: HeaderName = HeaderName::from_static("x-feature-grid");

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// The name of the layer, one of those of `/v1/model`; the last one if there is none.
    layer: Option<String>,
    /// A picture, or numbers.
    #[serde(default)]
    #[param(inline, default = "png")]
    format: Format,
}

/// How the map is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// A PNG file of the three channels that vary most, as red, green and blue.
    #[default]
    Png,
    /// f32, little endian, row by row, channels last.
    F32,
}

/// The feature map of one image.
#[derive(Debug)]
pub(super) struct LayerMap {
    grid: Grid,
    channels: usize,
    /// `[h, w, channels]`
    values: Vec<f32>,
    /// The map as a PNG file.
    png: Vec<u8>,
}

/// The features of a layer
///
/// As a PNG file, or with `format=f32` as numbers: little endian, row by row, channels last. The header
/// `x-feature-shape` then has height, width and channels, and `x-feature-grid` the column and row of the
/// first position and the distance of positions, in pixels of what the network sees.
#[utoipa::path(post, path = "/v1/features", params(Asked),
    request_body(description = "An image", content(
        (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "application/octet-stream"),
    )),
    responses(
        (status = 200, description = "A picture, or numbers", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "application/octet-stream"),
        )),
        (status = 400, description = "invalid_request, invalid_image, unknown_layer", body = ErrorBody),
        (status = 408, description = "timeout", body = ErrorBody),
        (status = 413, description = "body_too_large, image_too_large", body = ErrorBody),
        (status = 415, description = "unsupported_media_type", body = ErrorBody),
        (status = 429, description = "too_many_requests; see Retry-After", body = ErrorBody),
        (status = 503, description = "overloaded; see Retry-After", body = ErrorBody),
    ))]
pub(super) async fn features(
    State(app): Shared,
    client: Client,
    query: Values<Asked>,
    uploads: Uploads,
) -> Result<Response, ApiError> {
    let Asked { layer, format } = values(query)?;
    let layers = &app.networks.served.layers;
    let layer = match layer {
        None => layers.last().cloned().unwrap_or_default(),
        Some(name) if layers.contains(&name) => name,
        Some(name) => {
            let message = format!("layer: expected one of {}, got {name}", layers.join(", "));
            return Err(ApiError::new(Code::UnknownLayer, message));
        }
    };
    let (image, _memory) = uploads.one()?;
    let maps = app.ask(client, vec![image], (layer, 1), Job::Features).await?;
    let map = maps.into_iter().next().ok_or_else(|| ApiError::new(Code::Internal, "no answer"))?;
    map.into_response_as(format)
}

/// The maps of a batch, each of its own layer.
pub(super) fn compute(
    served: &Served,
    images: &[PreparedImage],
    layers: &[String],
) -> Result<Vec<LayerMap>, ApiError> {
    let inputs: Vec<_> = images.iter().map(|image| &image.input).collect();
    let maps = sren::equivariance::network_layers(
        served.predictor.network(),
        served.predictor.batch(&inputs),
    )?;
    let layer = |(index, name): (usize, &String)| {
        let Some((_, map)) = maps.iter().find(|(known, _)| known == name) else {
            return Err(ApiError::new(Code::UnknownLayer, name.as_str()));
        };
        LayerMap::of(map, index, [inputs[index].width(), inputs[index].height()])
    };
    layers.iter().enumerate().map(layer).collect()
}

impl LayerMap {
    /// The map of image number `index`.
    fn of(map: &FeatureMap, index: usize, size: [usize; 2]) -> Result<Self, ApiError> {
        let [.., channels] = map.values.dims();
        let values = map.values.clone().slice_dim(0, index..index + 1).into_data();
        let values: Vec<f32> = values.iter::<f32>().collect();
        let palette = Palette::of(&values, channels);
        let colours = ColourMap::new(map.grid, &values, channels, &palette);
        let mut canvas = Canvas::blank(PICTURE, PICTURE, [0.0; 3]);
        canvas.fill([0, 0], PICTURE, |place| {
            colours.colour([0, 1].map(|axis| place[axis] * size[axis] as f64 - 0.5))
        });
        Ok(Self { grid: map.grid, channels, values, png: canvas.png()? })
    }

    fn into_response_as(self, format: Format) -> Result<Response, ApiError> {
        if format == Format::Png {
            return Ok(([(header::CONTENT_TYPE, "image/png")], self.png).into_response());
        }
        let text = |text: String| {
            HeaderValue::from_str(&text).map_err(|e| ApiError::new(Code::Internal, e.to_string()))
        };
        let Self { grid, channels, .. } = &self;
        let shape = text(format!("{},{},{channels}", grid.height, grid.width))?;
        let place = text(format!("{},{},{}", grid.origin[0], grid.origin[1], grid.step))?;
        let bytes: Vec<u8> = self.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let kind = HeaderValue::from_static("application/octet-stream");
        Ok(([(header::CONTENT_TYPE, kind), (SHAPE, shape), (GRID, place)], bytes).into_response())
    }
}
