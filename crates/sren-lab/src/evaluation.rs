//! Accuracy of a network on transformed images.

use std::collections::BTreeMap;

use serde::Serialize;
use sren::Similarity;
use sren::models::Network;
use sren_data::{AugmentationPolicy, Dataset, RandomTransform, TestSet};

use crate::confusion::{Confusion, confusion};
use crate::error::Result;

/// How often the network is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// In per cent.
    pub accuracy: f64,
    /// Number of images.
    pub n: usize,
}

impl Accuracy {
    /// How far it may be from that of all such images, in per cent.
    pub fn standard_error(&self) -> f64 {
        (self.accuracy * (100.0 - self.accuracy) / self.n.max(1) as f64).sqrt()
    }
}

/// A network's accuracy on test sets, by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// The equivariance group: sren, so2, scale or cnn.
    pub model: String,
    /// How its training images were rotated, scaled and moved.
    pub augment: AugmentationPolicy,
    /// Its learned values.
    pub parameters: usize,
    /// The sets.
    pub sets: BTreeMap<String, Accuracy>,
}

/// The accuracy of `network` on the images `indices`, each transformed by `transform`. The
/// network is one that does not train.
pub fn accuracy(
    network: &Network,
    images: &Dataset,
    indices: &[usize],
    transform: impl Fn(usize) -> sren_data::Result<Similarity> + Sync,
) -> Result<Accuracy> {
    Ok(confusion(network, images, indices, transform)?.accuracy())
}

/// `count` numbers, or all, spread over `0..len`: classes may stand one after the other.
pub fn spread(len: usize, count: usize) -> Vec<usize> {
    let count = count.min(len);
    (0..count).map(|i| i * len / count).collect()
}

/// How test images are transformed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Transform {
    /// As in a test set.
    Set(TestSet),
    /// All the same.
    Fixed(Similarity),
    /// Each by a draw of its own.
    Random(RandomTransform),
}

impl Transform {
    /// Those of test sets, by name.
    pub fn named(sets: &[TestSet]) -> Vec<(String, Self)> {
        sets.iter().map(|set| (set.name().to_string(), Self::Set(*set))).collect()
    }

    /// The transform of image number `index`.
    pub fn at(&self, index: usize) -> sren_data::Result<Similarity> {
        match self {
            Self::Set(set) => set.transform(index),
            Self::Fixed(transform) => Ok(*transform),
            Self::Random(transform) => transform.draw(index),
        }
    }
}

/// One test set of photographs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassAccuracy {
    /// Over all images.
    #[serde(flatten)]
    pub all: Accuracy,
    /// Of each class, in per cent; none where there is no image.
    pub class_accuracy: Vec<Option<f64>>,
    /// By true class, then by predicted class.
    pub confusion: Confusion,
}

/// A network's accuracy on photographs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhotographEvaluation {
    /// The equivariance group: sren, so2, scale or cnn.
    pub model: String,
    /// How its training images were rotated and scaled.
    pub augment: AugmentationPolicy,
    /// Its learned values.
    pub parameters: usize,
    /// Where the images come from.
    pub data: String,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The sets, by name.
    pub sets: BTreeMap<String, ClassAccuracy>,
}

impl From<&PhotographEvaluation> for Evaluation {
    fn from(photographs: &PhotographEvaluation) -> Self {
        let sets = photographs.sets.iter().map(|(name, set)| (name.clone(), set.all));
        Self {
            model: photographs.model.clone(),
            augment: photographs.augment,
            parameters: photographs.parameters,
            sets: sets.collect(),
        }
    }
}

impl From<Confusion> for ClassAccuracy {
    fn from(confusion: Confusion) -> Self {
        let (all, class_accuracy) = (confusion.accuracy(), confusion.by_class());
        Self { all, class_accuracy, confusion }
    }
}
