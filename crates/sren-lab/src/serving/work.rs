//! What is computed: jobs of all kinds, those of one kind as one batch.

use rayon::prelude::*;
use sren_data::{ReducedImage, decode_reduced, image_size};
use tokio::sync::oneshot;

use super::error::{ApiError, Code};
use super::features::{self, LayerMap};
use super::networks::{Networks, Served};
use super::page::rotations::{self, Angles, Rotations};
use super::page::view::{self, Placement, View};
use super::poses::{self, PoseGrid};
use super::predict;
use super::queue::Place;
use super::upload::Upload;
use crate::inference::{Prediction, PreparedImage};

/// Most pixels of an image that is decoded. Files are small that say they are huge.
pub(super) const MAX_PIXELS: usize = 1 << 25;

/// A question about an image, and where the answer goes.
#[derive(Debug)]
pub(super) struct Asked<Q, A> {
    pub(super) image: Upload,
    pub(super) question: Q,
    pub(super) reply: oneshot::Sender<Result<A, ApiError>>,
    pub(super) place: Place,
}

/// One question about one image.
#[derive(Debug)]
pub(super) enum Job {
    /// The most probable classes, so many of them.
    Predict(Asked<usize, Prediction>),
    Poses(Asked<(), PoseGrid>),
    /// The features of the layer with this name.
    Features(Asked<String, LayerMap>),
    View(Asked<Placement, View>),
    Rotations(Asked<Angles, Rotations>),
}

/// Answers all jobs.
pub(super) fn compute(jobs: Vec<Job>, networks: &Networks) {
    let (mut predicted, mut posed, mut featured) = (Vec::new(), Vec::new(), Vec::new());
    let (mut views, mut rotations) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Predict(asked) => predicted.push(asked),
            Job::Poses(asked) => posed.push(asked),
            Job::Features(asked) => featured.push(asked),
            Job::View(asked) => views.push(asked),
            Job::Rotations(asked) => rotations.push(asked),
        }
    }
    let served = &networks.served;
    let prepared = |image: &Upload| prepare(served, image);
    answer(predicted, prepared, |images, top| predict::compute(served, images, &top));
    answer(posed, prepared, |images, _| poses::compute(served, &images));
    answer(featured, prepared, |images, layers| features::compute(served, &images, &layers));
    let decoded = |image: &Upload| decode(served, image);
    answer(views, decoded, |images, places| view::compute(networks, &images, &places));
    answer(rotations, decoded, |images, angles| rotations::compute(networks, &images, &angles));
}

/// Reads the images in parallel, has those that could be read computed as one batch, and replies.
/// Clients that have left get nothing computed.
fn answer<Q: Send, A: Send, D: Send>(
    mut asked: Vec<Asked<Q, A>>,
    read: impl Fn(&Upload) -> Result<D, ApiError> + Sync + Send,
    compute: impl FnOnce(Vec<D>, Vec<Q>) -> Result<Vec<A>, ApiError>,
) {
    asked.retain(|asked| !asked.reply.is_closed());
    if asked.is_empty() {
        return;
    }
    let uploads: Vec<&Upload> = asked.iter().map(|asked| &asked.image).collect();
    let images: Vec<Result<D, ApiError>> = uploads.into_par_iter().map(read).collect();
    let (mut read, mut questions, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for (Asked { question, reply, place, .. }, image) in asked.into_iter().zip(images) {
        match image {
            Ok(image) => {
                read.push(image);
                questions.push(question);
                waiting.push((reply, place));
            }
            Err(error) => respond(reply, place, Err(error)),
        }
    }
    if read.is_empty() {
        return;
    }
    let answers: Vec<Result<A, ApiError>> = match compute(read, questions) {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(error) => waiting.iter().map(|_| Err(error.clone())).collect(),
    };
    for ((reply, place), answer) in waiting.into_iter().zip(answers) {
        respond(reply, place, answer);
    }
}

/// Gives the place back, then answers: whoever has an answer finds the place free. A client that has
/// left needs none.
fn respond<A>(
    reply: oneshot::Sender<Result<A, ApiError>>,
    place: Place,
    answer: Result<A, ApiError>,
) {
    drop(place);
    let _ = reply.send(answer);
}

/// The image of an upload, about as large as the network needs it.
fn decode(served: &Served, image: &Upload) -> Result<ReducedImage, ApiError> {
    let Upload { name, bytes } = image;
    let invalid =
        |error: sren_data::DataError| ApiError::new(Code::InvalidImage, error.to_string());
    let [height, width] = image_size(name, bytes).map_err(invalid)?;
    if height.saturating_mul(width) > MAX_PIXELS {
        let message = format!(
            "{name}: expected an image of at most {MAX_PIXELS} pixels, got {width} x {height}"
        );
        return Err(ApiError::new(Code::ImageTooLarge, message));
    }
    decode_reduced(name, bytes, served.predictor.preprocessing().letterbox.side).map_err(invalid)
}

/// The image of an upload as the network sees it.
fn prepare(served: &Served, image: &Upload) -> Result<PreparedImage, ApiError> {
    let invalid = |error: crate::LabError| ApiError::new(Code::InvalidImage, error.to_string());
    served.predictor.prepare(image.name.clone(), &decode(served, image)?).map_err(invalid)
}
