//! Predictions for single test images.

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use sren::models::Network;
use sren::{Image, Similarity};
use sren_data::{Dataset, TestSet};

use crate::confusion::{BATCH, Confusion};
use crate::error::Result;
use crate::inference::inference_device;
use crate::progress::Task;

/// One image and the class that the network predicts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prediction {
    /// Its number in the test set.
    pub(super) index: usize,
    /// Its true class.
    pub(super) label: usize,
    /// The predicted class.
    pub(super) predicted: usize,
    /// The probability of the predicted class, 0..1.
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
    let task = Task::new(format!("predicting {}", set.name()), indices.len());
    let mut found = Vec::with_capacity(indices.len());
    let transform = |index: usize| -> sren_data::Result<Similarity> { set.transform(index) };
    for indices in indices.chunks(BATCH) {
        let batch = images.batch(indices, transform)?;
        let shape @ [n, h, w, c] = batch.shape;
        let data = TensorData::new(batch.images.clone(), shape);
        let logits = network.forward(Tensor::from_data(data, &inference_device()))?;
        // [n, classes]
        let probabilities: Vec<f32> = softmax(logits, 1).into_data().iter::<f32>().collect();
        for i in 0..n {
            let of = &probabilities[i * classes..][..classes];
            let predicted = (0..classes).max_by(|a, b| of[*a].total_cmp(&of[*b])).unwrap_or(0);
            let pixels = batch.images[i * h * w * c..][..h * w * c].to_vec();
            found.push(Prediction {
                index: indices[i],
                label: batch.labels[i] as usize,
                predicted,
                probability: of[predicted],
                image: Image::new(h, w, c, pixels)?,
            });
        }
        task.advance(n);
    }
    Ok(found)
}

/// The confusion matrix.
pub(super) fn confusion(predictions: &[Prediction], classes: usize) -> Result<Confusion> {
    let mut found = Confusion::new(classes);
    predictions.iter().try_for_each(|p| found.count(p.label, p.predicted))?;
    Ok(found)
}

/// The wrong predictions of the highest probability, at most `count`.
pub(super) fn most_confident_errors(predictions: &[Prediction], count: usize) -> Vec<&Prediction> {
    let mut wrong: Vec<&Prediction> =
        predictions.iter().filter(|p| p.predicted != p.label).collect();
    wrong.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    wrong.truncate(count);
    wrong
}
