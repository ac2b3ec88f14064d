//! One view of the page: an image under a transform, as both networks see it.

use axum::Json;
use axum::extract::State;
use data_encoding::BASE64;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sren::models::Backbone;
use sren::{Equivariance, Image, PoseField, Similarity};
use sren_data::ReducedImage;

use crate::canvas::Colour;
use crate::features::{ColourMap, Palette};
use crate::serving::error::{ApiError, Code};
use crate::serving::networks::{Networks, Served};
use crate::serving::predict::{Values, values};
use crate::serving::router::{Client, Shared};
use crate::serving::upload::Uploads;
use crate::serving::work::Job;

/// Side of the picture of features, in pixels.
const FEATURES: usize = 64;
/// Most arrows along a side.
const ARROWS: usize = 16;
/// Scales that are shown.
const SCALES: [f64; 2] = [0.25, 4.0];
/// Work of a view, in predictions.
const WEIGHT: usize = 8;

/// Where the image stands.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::serving) struct Placement {
    /// Degrees, clockwise.
    #[serde(default)]
    angle: f64,
    #[serde(default = "unchanged")]
    scale: f64,
}

fn unchanged() -> f64 {
    1.0
}

/// A similarity within the bounds of the page.
pub(super) fn similarity(angle: f64, scale: f64) -> Result<Similarity, ApiError> {
    let invalid = |message: String| ApiError::new(Code::InvalidRequest, message);
    if !(SCALES[0]..=SCALES[1]).contains(&scale) {
        return Err(invalid(format!("scale: expected {SCALES:?}, got {scale}")));
    }
    Similarity::new(scale, angle.to_radians(), [0.0; 2]).map_err(|e| invalid(e.to_string()))
}

/// What both networks make of the image.
#[derive(Debug, Serialize)]
pub(in crate::serving) struct View {
    served: NetworkView,
    plain: NetworkView,
    /// Of each local frame: column and row on the canvas, 0 to 1, scale in parts of the canvas, angle in
    /// radians, confidence.
    frames: Vec<[f32; 5]>,
    /// Side of the pictures of features.
    side: usize,
}

/// What one network makes of it.
#[derive(Debug, Serialize)]
struct NetworkView {
    probabilities: Vec<f32>,
    /// Red, green and blue of the features, transformed back, in base 64.
    features: String,
}

pub(in crate::serving) async fn view(
    State(app): Shared,
    client: Client,
    query: Values<Placement>,
    uploads: Uploads,
) -> Result<Json<View>, ApiError> {
    let placement = values(query)?;
    similarity(placement.angle, placement.scale)?;
    let (image, _memory) = uploads.one()?;
    let views = app.ask(client, vec![image], (placement, WEIGHT), Job::View).await?;
    views.into_iter().next().map(Json).ok_or_else(|| ApiError::new(Code::Internal, "no answer"))
}

/// The view of each image.
pub(in crate::serving) fn compute(
    networks: &Networks,
    images: &[ReducedImage],
    places: &[Placement],
) -> Result<Vec<View>, ApiError> {
    let view = |(image, place): (&ReducedImage, &Placement)| {
        let transform = similarity(place.angle, place.scale)?;
        let (served, plain) = rayon::join(
            || look(&networks.served, &image.image, &transform),
            || look(&networks.plain, &image.image, &transform),
        );
        let ((served, frames), (plain, _)) = (served?, plain?);
        Ok(View { served, plain, frames, side: FEATURES })
    };
    images.par_iter().zip(places).map(view).collect()
}

/// What a network makes of the image, and its frames.
fn look(
    served: &Served,
    image: &Image,
    transform: &Similarity,
) -> Result<(NetworkView, Vec<[f32; 5]>), ApiError> {
    let predictor = &served.predictor;
    let seen = |transform| predictor.preprocessing().apply(image, transform);
    let [upright, transformed] = [seen(&Similarity::IDENTITY)?, seen(transform)?];
    let input = predictor.batch(&[&transformed]);
    let fields = predictor.network().pose_fields(&input)?;
    let frames = match (fields.first(), served.group()) {
        (None, _) | (_, Equivariance::None) => Vec::new(),
        (Some(finest), group) => arrows(&group.restrict(finest.clone())?, &transformed),
    };
    let probabilities = predictor.probabilities(input, fields)?.into_iter().next();
    let features = features(served, &[&upright, &transformed], transform)?;
    Ok((NetworkView { probabilities: probabilities.unwrap_or_default(), features }, frames))
}

/// The frames that are drawn.
fn arrows(field: &PoseField, image: &Image) -> Vec<[f32; 5]> {
    let grid = field.grid();
    let every = grid.width.max(grid.height).div_ceil(ARROWS).max(1);
    let size = [image.width() as f32, image.height() as f32];
    let positions = (0..grid.len()).filter(|at| {
        let (row, column) = (at / grid.width, at % grid.width);
        row % every == every / 2 && column % every == every / 2 && field.confidence()[*at] > 0.0
    });
    let arrow = |at: usize| {
        let [x, y] = grid.point(at / grid.width, at % grid.width);
        let best = at * field.poses();
        let scale = field.scale()[best] / size[0];
        let [x, y] = [(x as f32 + 0.5) / size[0], (y as f32 + 0.5) / size[1]];
        [x, y, scale, field.angle()[best], field.confidence()[at]]
    };
    positions.map(arrow).collect()
}

/// The last feature map of the transformed image, transformed back, in the colours of the upright one.
fn features(
    served: &Served,
    [upright, transformed]: &[&Image; 2],
    transform: &Similarity,
) -> Result<String, ApiError> {
    let input = served.predictor.batch(&[upright, transformed]);
    let frames = served.fine.frames(&input)?;
    let map = served.fine.classifier().backbone.forward(input, &frames)?;
    let [_, height, width, channels] = map.values.dims();
    let values: Vec<f32> = map.values.into_data().iter::<f32>().collect();
    let (before, after) = values.split_at(height * width * channels);
    let palette = Palette::of(before, channels);
    let colours = ColourMap::new(map.grid, after, channels, &palette);
    let size = [transformed.width(), transformed.height()];
    let place = |i: usize| (i as f64 + 0.5) / FEATURES as f64;
    let byte = |colour: Colour| colour.map(|v| (255.0 * v).round() as u8);
    let pixels = (0..FEATURES * FEATURES).flat_map(|i| {
        byte(colours.transformed_back(transform, size, [place(i % FEATURES), place(i / FEATURES)]))
    });
    Ok(BASE64.encode(&pixels.collect::<Vec<u8>>()))
}
