//! Accuracy of a network on transformed digits.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use serde::Serialize;
use sren::Similarity;
use sren::models::SimResNet;
use sren_data::Dataset;

use crate::error::Result;

/// Images at a time.
const BATCH: usize = 128;

/// How often the network is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// In per cent.
    pub accuracy: f64,
    /// Number of images.
    pub n: usize,
}

/// A network's accuracy on test sets, by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// What the network follows: sren, so2, scale or cnn.
    pub model: String,
    /// Whether it was trained on images turned and scaled a little (SREN+).
    pub augmented: bool,
    /// Its learned values.
    pub parameters: usize,
    /// The sets.
    pub sets: BTreeMap<String, Accuracy>,
}

/// The device of networks that do not train.
pub fn plain_device() -> Device {
    Device::flex()
}

/// The accuracy of `network` on the images `indices`, each transformed as `transform` says. The
/// network is one that does not train.
pub fn accuracy(
    network: &SimResNet,
    images: &Dataset,
    indices: &[usize],
    transform: impl Fn(usize) -> sren_data::Result<Similarity> + Sync,
) -> Result<Accuracy> {
    let device = plain_device();
    let mut right = 0;
    for indices in indices.chunks(BATCH) {
        let batch = images.batch(indices, &transform)?;
        let input = Tensor::from_data(TensorData::new(batch.images, batch.shape), &device);
        let told = network.forward(input)?.argmax(1).into_data();
        let told = told.iter::<i64>().zip(&batch.labels);
        right += told.filter(|(told, label)| *told == i64::from(**label)).count();
    }
    let n = indices.len();
    Ok(Accuracy { accuracy: 100.0 * right as f64 / n.max(1) as f64, n })
}
