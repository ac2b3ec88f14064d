//! The orientation head: scores every class for every orientation of the image. Not in the paper.
//!
//! Mean and maximum over all positions lose where positions lie and how their frames are rotated
//! against each other. The moments of the features f keep it:
//!
//! ```text
//! z_mk = mean of f(x) d(x)^m e^(i k Gamma(x)),   d(x) = (x - centre) / extent, a complex number
//! ```
//! They rotate with the image, m + k times as fast. Two layers see them rotated by every step of a
//! circle and give each class a score for each orientation, `l(orientation, class)`. Rotating the
//! image by a step shifts the rows of `l` by one, so `sum over orientations of exp l` does not
//! change: marginalised over orientations, the score is invariant. The orientation of training
//! images is known, which tells the network their row. A prior for upright trades some invariance
//! for what is known of images that are seldom rotated.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, Linear, LinearConfig};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor, TensorData};
use num_complex::Complex32;
use sren_kernels::PoseField;

use super::Head;
use super::harmonics::{HarmonicLayers, HarmonicSizes, Harmonics};
use super::pooled::Pool;
use crate::error::{Error, Result};
use crate::layers::FeatureMap;
use crate::models::dropout;
use crate::models::geometry::Geometry;
use crate::pose::{Equivariance, Frames};

const OPERATION: &str = "OrientationHeadConfig";

/// The moments: powers m of the offset from the centre and k of the frame's direction. A head takes
/// the first few.
pub(crate) const MOMENTS: [[i32; 2]; 7] = [[0, 1], [0, 2], [1, 0], [0, 3], [2, 0], [1, 1], [1, -1]];

/// Keeps means over no positions finite.
const EPSILON: f32 = 1e-3;

/// Configuration of an [`OrientationHead`].
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct OrientationHeadConfig {
    /// Number of orientations, a multiple of 4, so that a right angle is one of them.
    pub orientations: usize,
    /// Channels of the hidden layer.
    pub hidden: usize,
    /// Moments of every feature, 1 to 7.
    #[config(default = 3)]
    pub moments: usize,
    /// The prior probability that an image is upright, below 1; the rest is spread over all
    /// orientations. With 0 the answer is invariant.
    #[config(default = 0.0)]
    pub upright_prior: f64,
    /// The pool beside the moments.
    #[config(default = "Pool::Mean")]
    pub pool: Pool,
    /// Dropout of the hidden layer, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// Scores classes and orientations from pooled features and their moments. Made by
/// [`OrientationHeadConfig`].
#[derive(Module, Debug)]
pub struct OrientationHead {
    /// From the pooled features to the hidden layer.
    pub pooled: Linear,
    /// From the rotated moments to the hidden layer.
    pub moments: Linear,
    /// Before the last layer.
    pub dropout: Option<Dropout>,
    /// From the hidden layer to classes.
    pub linear: Linear,
    #[module(skip)]
    pub(crate) pool: Pool,
    pub(crate) orientations: usize,
    pub(crate) moment_count: usize,
    upright_prior: f64,
}

impl OrientationHeadConfig {
    /// A new head for features of `channels` channels.
    pub fn init(
        &self,
        channels: usize,
        classes: usize,
        device: &Device,
    ) -> Result<OrientationHead> {
        self.check()?;
        let moments = LinearConfig::new(2 * self.moments * channels, self.hidden).with_bias(false);
        Ok(OrientationHead {
            pooled: LinearConfig::new(self.pool.width(channels), self.hidden).init(device),
            moments: moments.init(device),
            dropout: dropout(self.dropout, OPERATION)?,
            linear: LinearConfig::new(self.hidden, classes).init(device),
            pool: self.pool,
            orientations: self.orientations,
            moment_count: self.moments,
            upright_prior: self.upright_prior,
        })
    }

    fn check(&self) -> Result<()> {
        let count = self.orientations;
        if count == 0 || count > 360 || !count.is_multiple_of(4) {
            let expected = "orientations a multiple of 4, at most 360";
            return Err(Error::shape(OPERATION, expected, count.to_string()));
        }
        if self.hidden == 0 {
            return Err(Error::shape(OPERATION, "at least 1 hidden channel", "0"));
        }
        if !(0.0..1.0).contains(&self.upright_prior) {
            let expected = "an upright prior in 0..1";
            return Err(Error::shape(OPERATION, expected, self.upright_prior.to_string()));
        }
        if !(1..=MOMENTS.len()).contains(&self.moments) {
            let expected = format!("1 to {} moments", MOMENTS.len());
            return Err(Error::shape(OPERATION, expected, self.moments.to_string()));
        }
        Ok(())
    }

    /// Adds its layers to `geometry`.
    pub(super) fn trace(
        &self,
        classes: usize,
        group: Equivariance,
        geometry: &mut Geometry,
    ) -> Result<()> {
        self.check()?;
        let channels = geometry.channels();
        let sizes = HarmonicSizes {
            pooled: self.pool.width(channels),
            channels,
            moments: self.moments,
            hidden: self.hidden,
            classes,
            orientations: self.orientations,
        };
        sizes.trace("head.", group, geometry)
    }
}

impl Head for OrientationHead {
    fn forward(&self, features: &FeatureMap, frames: &Frames) -> Result<Tensor<3>> {
        // [n, h, w, c] -> [n, width], [n, 2 moments, c]
        let pooled = self.pool.forward(features, frames)?;
        let moments =
            self.feature_moments(features.values.clone(), &*frames.field(&features.grid)?);
        let harmonics = Harmonics { orders: &self.orders(), orientations: self.orientations };
        let layers = HarmonicLayers {
            pooled: &self.pooled,
            moments: &self.moments,
            dropout: self.dropout.as_ref(),
            linear: &self.linear,
        };
        Ok(layers.scores(harmonics, pooled, moments, frames.equivariance()))
    }

    fn upright_prior(&self) -> f64 {
        self.upright_prior
    }
}

impl OrientationHead {
    /// How many times as fast as the image each moment rotates.
    pub(crate) fn orders(&self) -> Vec<i32> {
        MOMENTS[..self.moment_count].iter().map(|[m, k]| m + k).collect()
    }

    /// The moments of gated features `[n, h, w, c]` with the poses of `field`: `[n, 2 moments, c]`,
    /// real and imaginary parts.
    fn feature_moments(&self, features: Tensor<4>, field: &PoseField) -> Tensor<3> {
        let [n, h, w, c] = features.dims();
        let (area, parts) = (h * w, 2 * self.moment_count);
        let mut weights = vec![0.0f32; n * parts * area];
        for (image, weights) in weights.chunks_exact_mut(parts * area).enumerate() {
            for (position, place) in places(field, image).into_iter().enumerate() {
                for (moment, powers) in MOMENTS[..self.moment_count].iter().enumerate() {
                    let factor = place.moment(*powers);
                    weights[2 * moment * area + position] = factor.re;
                    weights[(2 * moment + 1) * area + position] = factor.im;
                }
            }
        }
        let weights = TensorData::new(weights, [n, parts, area]);
        let weights = Tensor::<3>::from_data(weights, &features.device());
        // [n, 2 moments, h w] x [n, h w, c]
        weights.matmul(features.reshape([n, area, c]))
    }
}

/// A position, as it enters the moments.
struct Place<'a> {
    /// Its weight in a mean over all positions.
    weight: f32,
    /// Its offset from their centre, in units of their extent.
    offset: Complex32,
    /// The directions of its frames, with their weights.
    angles: &'a [f32],
    weights: &'a [f32],
}

impl Place<'_> {
    /// The factor of a feature at this position in moment (m, k).
    fn moment(&self, [m, k]: [i32; 2]) -> Complex32 {
        if self.weight == 0.0 {
            return Complex32::ZERO;
        }
        let start = Complex32::new(self.weight, 0.0);
        let offset = (0..m).fold(start, |power, _| power * self.offset);
        let frames = self.angles.iter().zip(self.weights);
        frames.fold(Complex32::ZERO, |sum, (angle, weight)| {
            let (sin, cos) = (k as f32 * angle).sin_cos();
            sum + offset * Complex32::new(weight * cos, weight * sin)
        })
    }
}

/// All positions of an image.
fn places(field: &PoseField, image: usize) -> Vec<Place<'_>> {
    let (grid, poses) = (field.grid(), field.poses());
    let gate = &field.confidence()[image * grid.len()..][..grid.len()];
    let sum = gate.iter().sum::<f32>() + EPSILON;
    let point = |at: usize| grid.point(at / grid.width, at % grid.width).map(|x| x as f32);
    let mean = |value: &dyn Fn([f32; 2]) -> f32| {
        gate.iter().enumerate().map(|(at, gate)| gate * value(point(at))).sum::<f32>() / sum
    };
    let centre = [mean(&|[x, _]| x), mean(&|[_, y]| y)];
    let extent = mean(&|[x, y]| (x - centre[0]).powi(2) + (y - centre[1]).powi(2)).sqrt() + EPSILON;
    let place = |at: usize| {
        let ([x, y], first) = (point(at), (image * grid.len() + at) * poses);
        Place {
            // The features are gated already.
            weight: if gate[at] == 0.0 { 0.0 } else { 1.0 / sum },
            offset: Complex32::new((x - centre[0]) / extent, (y - centre[1]) / extent),
            angles: &field.angle()[first..][..poses],
            weights: &field.weight()[first..][..poses],
        }
    };
    (0..grid.len()).map(place).collect()
}

/// Scores `[n, orientations, classes]` -> scores of classes `[n, classes]`, marginalised over
/// orientations: upright has the prior probability `upright_prior`, the rest is spread over all.
pub fn marginalise(scores: Tensor<3>, upright_prior: f64) -> Tensor<2> {
    let [n, orientations, classes] = scores.dims();
    if orientations == 1 {
        return scores.reshape([n, classes]);
    }
    let prior = prior(orientations, upright_prior, &scores.device());
    // log-sum-exp, about the maximum
    let top = scores.clone().max_dim(1).detach();
    let sum = ((scores - top.clone()).exp() * prior).sum_dim(1);
    (sum.log() + top).reshape([n, classes])
}

/// Scores `[n, orientations, classes]` -> posterior probability of each orientation,
/// `[n, orientations]`, marginalised over classes.
pub fn orientation_posterior(scores: Tensor<3>, upright_prior: f64) -> Tensor<2> {
    let ([n, orientations, classes], device) = (scores.dims(), scores.device());
    let joint = softmax(scores.reshape([n, orientations * classes]), 1);
    let joint = joint.reshape([n, orientations, classes]);
    let posterior = (joint * prior(orientations, upright_prior, &device)).sum_dim(2);
    let posterior = posterior.reshape([n, orientations]);
    posterior.clone() / posterior.sum_dim(1)
}

/// The prior of every orientation, `[1, orientations, 1]`.
fn prior(orientations: usize, upright_prior: f64, device: &Device) -> Tensor<3> {
    let prior = orientation_prior(orientations, upright_prior);
    Tensor::from_data(TensorData::new(prior, [1, orientations, 1]), device)
}

/// The prior of every orientation, upright first.
pub(crate) fn orientation_prior(orientations: usize, upright_prior: f64) -> Vec<f32> {
    let any = (1.0 - upright_prior) / orientations as f64;
    let mut prior = vec![any as f32; orientations];
    prior[0] += upright_prior as f32;
    prior
}
