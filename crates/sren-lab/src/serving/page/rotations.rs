//! The probability of each class at many angles, for both networks.

use axum::Json;
use axum::extract::State;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sren::Image;
use sren_data::ReducedImage;

use super::view::similarity;
use crate::serving::error::{ApiError, Code};
use crate::serving::networks::{Networks, Served};
use crate::serving::predict::{Values, values};
use crate::serving::router::{Client, Shared};
use crate::serving::upload::Uploads;
use crate::serving::work::Job;

/// Most angles of a request.
const MOST: usize = 72;

/// The angles `from`, `from + step` and so on, in degrees.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::serving) struct Angles {
    from: f64,
    step: f64,
    count: usize,
    scale: f64,
}

/// Probabilities `[angles, classes]`.
#[derive(Debug, Serialize)]
pub(in crate::serving) struct Rotations {
    served: Vec<Vec<f32>>,
    plain: Vec<Vec<f32>>,
}

pub(in crate::serving) async fn rotations(
    State(app): Shared,
    client: Client,
    query: Values<Angles>,
    uploads: Uploads,
) -> Result<Json<Rotations>, ApiError> {
    let angles = values(query)?;
    if !(1..=MOST).contains(&angles.count) {
        let message = format!("count: expected 1 to {MOST}, got {}", angles.count);
        return Err(ApiError::new(Code::InvalidRequest, message));
    }
    similarity(angles.from + angles.step, angles.scale)?;
    let (image, _memory) = uploads.one()?;
    let answers = app.ask(client, vec![image], (angles, 2 * angles.count), Job::Rotations).await?;
    answers.into_iter().next().map(Json).ok_or_else(|| ApiError::new(Code::Internal, "no answer"))
}

/// The rotations of each image.
pub(in crate::serving) fn compute(
    networks: &Networks,
    images: &[ReducedImage],
    angles: &[Angles],
) -> Result<Vec<Rotations>, ApiError> {
    let all = |(image, angles): (&ReducedImage, &Angles)| {
        Ok(Rotations {
            served: rotated(&networks.served, &image.image, angles)?,
            plain: rotated(&networks.plain, &image.image, angles)?,
        })
    };
    images.iter().zip(angles).map(all).collect()
}

fn rotated(served: &Served, image: &Image, angles: &Angles) -> Result<Vec<Vec<f32>>, ApiError> {
    let predictor = &served.predictor;
    let seen = |number: usize| -> Result<Image, ApiError> {
        let transform = similarity(angles.from + number as f64 * angles.step, angles.scale)?;
        Ok(predictor.preprocessing().apply(image, &transform)?)
    };
    let images: Vec<Image> =
        (0..angles.count).into_par_iter().map(seen).collect::<Result<_, _>>()?;
    let input = predictor.batch(&images.iter().collect::<Vec<_>>());
    let fields = predictor.network().pose_fields(&input)?;
    Ok(predictor.probabilities(input, fields)?)
}
