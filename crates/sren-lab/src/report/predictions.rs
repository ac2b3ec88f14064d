//! What a network says of single test images.

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use sren::models::Network;
use sren::{Image, Similarity};
use sren_data::{Dataset, TestSet};

use crate::confusion::{BATCH, Confusion};
use crate::error::Result;
use crate::inference::inference_device;

/// One image and what the network says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prediction {
    /// Its number in the test set.
    pub(super) index: usize,
    /// What it is.
    pub(super) label: usize,
    /// What the network takes it for.
    pub(super) told: usize,
    /// How sure the network is, 0..1.
    pub(super) probability: f32,
    /// The image as the network saw it.
    pub(super) image: Image,
}

/// The predictions for the images `indices` of a test set.
pub(super) fn predictions(
    network: &Network,
    images: &Dataset,
    set: TestSet,
    indices: &[usize],
) -> Result<Vec<Prediction>> {
    let classes = images.classes().len();
    let mut found = Vec::with_capacity(indices.len());
    let transform = |index: usize| -> sren_data::Result<Similarity> { set.transform(index) };
    for indices in indices.chunks(BATCH) {
        let batch = images.batch(indices, transform)?;
        let shape @ [n, h, w, c] = batch.shape;
        let data = TensorData::new(batch.images.clone(), shape);
        let logits = network.forward(Tensor::from_data(data, &inference_device()))?;
        let chances: Vec<f32> = softmax(logits, 1).into_data().iter::<f32>().collect();
        for i in 0..n {
            let of = &chances[i * classes..][..classes];
            let told = (0..classes).max_by(|a, b| of[*a].total_cmp(&of[*b])).unwrap_or(0);
            let pixels = batch.images[i * h * w * c..][..h * w * c].to_vec();
            found.push(Prediction {
                index: indices[i],
                label: batch.labels[i] as usize,
                told,
                probability: of[told],
                image: Image::new(h, w, c, pixels)?,
            });
        }
    }
    Ok(found)
}

/// How often each class is taken for each.
pub(super) fn confusion(predictions: &[Prediction], classes: usize) -> Result<Confusion> {
    let mut found = Confusion::new(classes);
    predictions.iter().try_for_each(|p| found.count(p.label, p.told))?;
    Ok(found)
}

/// The mistakes that the network is surest of, at most `count`.
pub(super) fn worst(predictions: &[Prediction], count: usize) -> Vec<&Prediction> {
    let mut wrong: Vec<&Prediction> = predictions.iter().filter(|p| p.told != p.label).collect();
    wrong.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    wrong.truncate(count);
    wrong
}
