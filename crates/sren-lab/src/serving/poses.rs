//! `POST /v1/poses`: the local frames that the network computes in.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use sren::PoseField;
use utoipa::ToSchema;

use super::error::{ApiError, Code, ErrorBody};
use super::networks::Served;
use super::router::{Client, Shared};
use super::upload::Uploads;
use super::work::Job;
use crate::inference::PreparedImage;

/// The poses of an image on a grid, in pixels of the file. The grid also covers the canvas around the
/// image. Where the confidence is 0 there is no pose.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PoseGrid {
    /// Height of the image.
    height: usize,
    /// Width of the image.
    width: usize,
    /// Column and row of the first position of the grid.
    origin: [f64; 2],
    /// Distance of neighbouring positions.
    step: f64,
    /// Sizes of structures, row by row.
    scale_px: Vec<Vec<f32>>,
    /// Directions from dark to bright, in degrees, clockwise from the right.
    angle_deg: Vec<Vec<f32>>,
    /// 0 to 1.
    confidence: Vec<Vec<f32>>,
}

/// The local frames of an image
///
/// Scale, angle and confidence on the finest grid that the network computes on.
#[utoipa::path(post, path = "/v1/poses",
    request_body(description = "An image", content(
        (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "application/octet-stream"),
    )),
    responses(
        (status = 200, body = PoseGrid),
        (status = 400, description = "invalid_request, invalid_image, no_frames", body = ErrorBody),
        (status = 408, description = "timeout", body = ErrorBody),
        (status = 413, description = "body_too_large, image_too_large", body = ErrorBody),
        (status = 415, description = "unsupported_media_type", body = ErrorBody),
        (status = 429, description = "too_many_requests; see Retry-After", body = ErrorBody),
        (status = 503, description = "overloaded; see Retry-After", body = ErrorBody),
    ))]
pub(super) async fn poses(
    State(app): Shared,
    client: Client,
    uploads: Uploads,
) -> Result<Json<PoseGrid>, ApiError> {
    let served = &app.networks.served;
    if !served.has_frames() {
        let message =
            format!("{}: expected a model with local frames, got a plain CNN", served.name);
        return Err(ApiError::new(Code::NoFrames, message));
    }
    let (image, _memory) = uploads.one()?;
    let poses = app.ask(client, vec![image], ((), 1), Job::Poses).await?;
    poses.into_iter().next().map(Json).ok_or_else(|| ApiError::new(Code::Internal, "no answer"))
}

/// The poses of a batch.
pub(super) fn compute(
    served: &Served,
    images: &[PreparedImage],
) -> Result<Vec<PoseGrid>, ApiError> {
    let inputs: Vec<_> = images.iter().map(|image| &image.input).collect();
    let fields = served.predictor.network().pose_fields(&served.predictor.batch(&inputs))?;
    let Some(finest) = fields.into_iter().next() else {
        return Err(ApiError::new(Code::Internal, "the network has no grid"));
    };
    let field = served.group().restrict(finest)?;
    Ok(images.iter().enumerate().map(|(index, image)| PoseGrid::of(&field, index, image)).collect())
}

impl PoseGrid {
    /// The poses of image number `index` of the field.
    fn of(field: &PoseField, index: usize, image: &PreparedImage) -> Self {
        let (grid, [height, width]) = (field.grid(), image.size);
        let positions = index * grid.len()..(index + 1) * grid.len();
        let rows = |value: &dyn Fn(usize) -> f32| -> Vec<Vec<f32>> {
            let values: Vec<f32> = positions.clone().map(value).collect();
            values.chunks(grid.width.max(1)).map(<[f32]>::to_vec).collect()
        };
        let best = |at: usize| at * field.poses();
        let pixel = image.pixel;
        // The centre of the canvas is that of the image.
        let place = |axis: usize, canvas: usize, file: usize| {
            let from_centre = grid.origin[axis] - 0.5 * (canvas as f64 - 1.0);
            pixel * from_centre + 0.5 * (file as f64 - 1.0)
        };
        Self {
            height,
            width,
            origin: [place(0, image.input.width(), width), place(1, image.input.height(), height)],
            step: pixel * grid.step,
            scale_px: rows(&|at| field.scale()[best(at)] * pixel as f32),
            angle_deg: rows(&|at| field.angle()[best(at)].to_degrees()),
            confidence: rows(&|at| field.confidence()[at]),
        }
    }
}
