//! The training loss of a network.
//!
//! It is the cross entropy of the class, marginalised over orientations; with an orientation head,
//! that of the orientation, given the class; and with a canonicalised branch, that of the branch. The
//! scores of a log-polar branch add to those of the head.

use std::f64::consts::TAU;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};
use sren_math::Similarity;

use super::backbone::Backbone;
use super::heads::{AnyHead, Head, marginalise};
use super::network::Network;
use crate::error::{Error, Result};
use crate::layers::FeatureMap;
use crate::pose::Frames;

/// Weight of the orientation's cross entropy where the features learn it too,
const FEATURE_WEIGHT: f64 = 0.5;
/// and where the head alone does.
const HEAD_WEIGHT: f64 = 0.25;

/// A batch to train on.
#[derive(Debug, Clone)]
pub struct TrainingBatch {
    /// `[n, h, w, c]`.
    pub images: Tensor<4>,
    /// The class of each image, `[n]`.
    pub targets: Tensor<1, Int>,
    /// The transform each image was drawn with.
    pub transforms: Vec<Similarity>,
}

/// The loss of a batch.
#[derive(Debug, Clone)]
pub struct TrainingLoss {
    /// The mean over the batch, one value.
    pub loss: Tensor<1>,
    /// Images classified correctly.
    pub correct: usize,
}

impl Network {
    /// The training forward pass: the loss of `batch` in `frames`, with optional weights of the
    /// classes.
    pub fn loss(
        &self,
        batch: TrainingBatch,
        frames: &Frames,
        class_weights: Option<Vec<f32>>,
    ) -> Result<TrainingLoss> {
        let TrainingBatch { images, targets, transforms } = batch;
        let [n, ..] = images.dims();
        if targets.dims() != [n] || transforms.len() != n {
            let expected = format!("{n} targets and transforms");
            let got = format!("{} and {}", targets.dims()[0], transforms.len());
            return Err(Error::shape("Network::loss", expected, got));
        }
        let classifier = self.classifier();
        let branch = match self {
            Self::Single(_) => None,
            Self::Canonicalised(pair) => Some((pair, pair.branch.forward(images.clone())?)),
        };
        let whole = match &classifier.log_polar {
            Some(branch) => Some(branch.forward_training(&images, frames.equivariance())?),
            None => None,
        };
        let features = classifier.backbone.forward(images, frames)?;
        let scores = classifier.head.forward(&features, frames)?;
        let mut orientation = match &classifier.head {
            AnyHead::Pooled(_) => None,
            head @ AnyHead::Orientation(_) => {
                Some(orientation_scores(head, features, &scores, frames, &transforms)?)
            }
        };
        let scores = match whole {
            Some(whole) => {
                orientation = orientation.map(|(own, weight)| (own + whole.clone(), weight));
                scores + whole
            }
            None => scores,
        };
        let mut logits = marginalise(scores, 0.0);
        check_weights(class_weights.as_deref(), logits.dims()[1])?;
        let cross_entropy =
            CrossEntropyLossConfig::new().with_weights(class_weights).init(&logits.device());
        let mut loss = cross_entropy.forward(logits.clone(), targets.clone());
        if let Some((pair, branch)) = branch {
            loss = loss + cross_entropy.forward(branch.clone(), targets.clone());
            logits = pair.combine(logits, branch);
        }
        let predicted = logits.argmax(1).squeeze_dim::<1>(1);
        let correct = predicted.equal(targets.clone()).int().sum().into_scalar::<i64>() as usize;
        if let Some((scores, weight)) = orientation {
            loss = loss + orientation_loss(scores, targets, &transforms).mul_scalar(weight);
        }
        Ok(TrainingLoss { loss, correct })
    }
}

/// Returns an error unless there is a positive weight for each class.
fn check_weights(weights: Option<&[f32]>, classes: usize) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() == classes && weights.iter().all(|weight| *weight > 0.0) {
        return Ok(());
    }
    let expected = format!("{classes} class weights above 0");
    Err(Error::shape("Network::loss", expected, format!("{weights:?}")))
}

/// The scores that the orientation is learned by, and the weight of its loss. The features learn it
/// only from images that are rotated at random: where all are upright they would learn it from the
/// pixel lattice, which does not rotate with the image. A log-polar branch may learn it always:
/// trained upright, it is as accurate on rotated images (docs/experiments-log.md).
fn orientation_scores(
    head: &AnyHead,
    features: FeatureMap,
    scores: &Tensor<3>,
    frames: &Frames,
    transforms: &[Similarity],
) -> Result<(Tensor<3>, f64)> {
    if transforms.iter().any(|transform| transform.angle() != 0.0) {
        return Ok((scores.clone(), FEATURE_WEIGHT));
    }
    let constant = FeatureMap { values: features.values.detach(), ..features };
    Ok((head.forward(&constant, frames)?, HEAD_WEIGHT))
}

/// The cross entropy of the orientation, given the true class. Zero for one orientation.
fn orientation_loss(
    scores: Tensor<3>,
    targets: Tensor<1, Int>,
    transforms: &[Similarity],
) -> Tensor<1> {
    let ([n, orientations, _], device) = (scores.dims(), scores.device());
    if orientations == 1 {
        return Tensor::zeros([1], &device);
    }
    // [n, orientations, classes] -> [n, orientations]: those of the true class
    let own = targets.reshape([n, 1, 1]).expand([n, orientations, 1]);
    let own = log_softmax(scores.gather(2, own).reshape([n, orientations]), 1);
    let upright = transforms.iter().flat_map(|t| upright_probabilities(t.angle(), orientations));
    let upright = TensorData::new(upright.collect::<Vec<f32>>(), [n, orientations]);
    (own * Tensor::<2>::from_data(upright, &device)).sum_dim(1).mean().neg()
}

/// The probability that each of `count` rotations makes an image upright that is rotated by `angle`:
/// a triangle of two steps to either side, for handwriting is not exactly upright.
fn upright_probabilities(angle: f64, count: usize) -> impl Iterator<Item = f32> {
    let steps = -angle / TAU * count as f64;
    let count = count as f64;
    (0..count as usize).map(move |step| {
        let away = (step as f64 - steps).rem_euclid(count);
        (0.5 - 0.25 * away.min(count - away)).max(0.0) as f32
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn value(scores: &[[f32; 2]], target: i32, angle: f64) -> f32 {
        let device = Device::flex();
        let flat: Vec<f32> = scores.iter().flatten().copied().collect();
        let scores = Tensor::from_data(TensorData::new(flat, [1, scores.len(), 2]), &device);
        let target = Tensor::from_data(TensorData::new(vec![target], [1]), &device);
        let rotation = Similarity::new(1.0, angle, [0.0; 2]).unwrap();
        orientation_loss(scores, target, &[rotation]).into_scalar::<f32>()
    }

    #[test]
    fn one_orientation_costs_nothing() {
        assert_eq!(value(&[[0.0, 3.0]], 1, 0.0), 0.0);
    }

    #[test]
    fn the_wrong_orientation_of_the_right_class_costs_more() {
        let loss = |step: usize, angle: f64| {
            let mut scores = [[0.0f32; 2]; 8];
            scores[step][0] = 6.0;
            value(&scores, 0, angle)
        };
        // An image that is rotated by two steps is upright after six more.
        for (angle, back) in [(0.0, 0), (TAU / 4.0, 6)] {
            let [there, aside, over] = [0, 1, 4].map(|more| loss((back + more) % 8, angle));
            assert!(there < aside && aside < over, "{there} {aside} {over}");
        }
        let sum: f32 = upright_probabilities(1.234, 24).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
}
