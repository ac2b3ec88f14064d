//! A head that asks which way the image is turned.
//!
//! Mean and maximum over all positions forget how the frames of positions are turned against each
//! other and where they lie. The moments of the features f do not:
//!
//! ```text
//! z_k = mean of f(x) e^(i k Gamma(x)), k = 1, 2        z_0 = mean of f(x) (x - centre) / extent
//! ```
//! They turn with the image. Two layers see them turned by every step of a circle, and give each
//! class a score for each turn, `l(turn, class)`. If the image is turned by a step, the rows of `l`
//! move on by one, so `sum over turns of exp l` does not change: it is the invariant answer. Training
//! images stand upright, which tells the network the row that is theirs; a prior for that row gives
//! away some invariance for what is known of images that are seldom turned.

use std::f32::consts::TAU;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Tensor, TensorData};
use sren_kernels::PoseField;

use crate::Equivariance;
use crate::error::{Error, Result};

/// Harmonic of the angle by which each pair of moments turns.
const HARMONICS: [f32; PAIRS] = [1.0, 2.0, 1.0];
const PAIRS: usize = 3;
/// Moments of a channel: two for each pair.
const MOMENTS: usize = 2 * PAIRS;
/// Keeps means of nothing finite.
const NOTHING: f32 = 1e-3;

/// Configuration of an [`Orientation`].
#[derive(Config, Debug)]
pub struct OrientationConfig {
    /// Turns that are looked at. A multiple of 4, so that a right angle is one of them.
    pub turns: usize,
    /// Channels of the hidden layer.
    pub channels: usize,
    /// How much is known before: the part of images that stand upright, the others being turned by
    /// any angle; below 1. With 0 the answer is invariant.
    #[config(default = 0.0)]
    pub upright: f64,
}

/// The hidden layer of the head that asks which way the image is turned. Made by
/// [`OrientationConfig`].
#[derive(Module, Debug)]
pub struct Orientation {
    /// From the pooled features,
    pub pooled: Linear,
    /// and from the moments, turned.
    pub turned: Linear,
    turns: usize,
    upright: f64,
}

impl OrientationConfig {
    /// A new layer for features of `channels` channels, `pooled` of them after the pool.
    pub(super) fn init(
        &self,
        channels: usize,
        pooled: usize,
        device: &Device,
    ) -> Result<Orientation> {
        self.check()?;
        let Self { turns, channels: hidden, upright } = *self;
        let turned = LinearConfig::new(MOMENTS * channels, hidden).with_bias(false);
        Ok(Orientation {
            pooled: LinearConfig::new(pooled, hidden).init(device),
            turned: turned.init(device),
            turns,
            upright,
        })
    }

    /// Refuses what is no such layer.
    pub(super) fn check(&self) -> Result<()> {
        const OPERATION: &str = "OrientationConfig";
        if self.turns == 0 || self.turns > 360 || !self.turns.is_multiple_of(4) {
            let expected = "turns a multiple of 4, at most 360";
            return Err(Error::shape(OPERATION, expected, self.turns.to_string()));
        }
        if !(0.0..1.0).contains(&self.upright) {
            let expected = "an upright part in 0..1";
            return Err(Error::shape(OPERATION, expected, self.upright.to_string()));
        }
        Ok(())
    }

    /// Learned values, for features of `channels` channels, `pooled` after the pool.
    pub(super) fn parameters(&self, channels: usize, pooled: usize) -> usize {
        let inputs = channels.saturating_mul(MOMENTS).saturating_add(pooled).saturating_add(1);
        inputs.saturating_mul(self.channels)
    }
}

impl Orientation {
    /// Turns that a network looks at: one, if it does not follow rotations.
    pub(super) fn turns(&self, equivariance: Equivariance) -> usize {
        if equivariance.follows_rotation() { self.turns } else { 1 }
    }

    /// Pooled features `[n, pooled]` and [moments] `[n, 6, c]` -> `[n, turns, channels]`.
    ///
    /// With `W_x`, `W_y` for the parts of a pair z, turned by a, the layer gives
    /// `cos a (W_x z_x + W_y z_y) + sin a (W_y z_x - W_x z_y)`: two products a pair, not one a turn.
    pub(super) fn forward(
        &self,
        pooled: Tensor<2>,
        moments: Tensor<3>,
        equivariance: Equivariance,
    ) -> Tensor<3> {
        let [n, _, c] = moments.dims();
        let ([_, hidden], turns) = (self.turned.weight.dims(), self.turns(equivariance));
        // [n, 6, c] -> [pairs, n, 2, c], as it is and turned by a right angle of its harmonic
        let upright = moments.reshape([n, PAIRS, 2, c]).swap_dims(0, 1);
        let aside = Tensor::cat(
            vec![upright.clone().narrow(2, 1, 1).neg(), upright.clone().narrow(2, 0, 1)],
            2,
        );
        let both = [upright, aside].map(|moments| moments.reshape([PAIRS, n, 2 * c]));
        let weight = self.turned.weight.val().reshape([PAIRS, 2 * c, hidden]);
        // [pairs, 2 n, 2 c] x [pairs, 2 c, hidden] -> [n, 6, hidden]
        let parts = Tensor::cat(both.to_vec(), 1).matmul(weight);
        let parts = parts.reshape([PAIRS, 2, n, hidden]).permute([2, 0, 1, 3]);
        let parts = parts.reshape([n, MOMENTS, hidden]);
        // [n, turns, 6] x [n, 6, hidden]
        let turned =
            circle(self.turns, turns, &parts.device()).expand([n, turns, MOMENTS]).matmul(parts);
        let pooled = self.pooled.forward(pooled).unsqueeze_dim::<3>(1);
        relu(turned + pooled)
    }

    /// The part of images that is taken to stand upright.
    pub fn upright(&self) -> f64 {
        self.upright
    }

    /// Multiply-adds for one image.
    pub(super) fn multiply_adds(&self, turns: usize) -> usize {
        let [pooled, hidden] = self.pooled.weight.dims();
        let [moments, _] = self.turned.weight.dims();
        (pooled + 2 * moments + MOMENTS * turns) * hidden
    }
}

/// Cosine and sine of each harmonic of the first `count` of `turns` turns of a circle:
/// `[1, count, 6]`.
fn circle(turns: usize, count: usize, device: &Device) -> Tensor<3> {
    let of_turn = |turn: usize| {
        let angle = TAU * turn as f32 / turns as f32;
        HARMONICS.map(|harmonic| (harmonic * angle).sin_cos())
    };
    let values: Vec<f32> = (0..count).flat_map(of_turn).flat_map(|(sin, cos)| [cos, sin]).collect();
    Tensor::from_data(TensorData::new(values, [1, count, MOMENTS]), device)
}

/// The moments of features `[n, h, w, c]` that have the poses of `field`: `[n, 6, c]`. The features
/// are those already multiplied with the gate.
pub(super) fn moments(features: Tensor<4>, field: &PoseField) -> Tensor<3> {
    let [n, h, w, c] = features.dims();
    let area = h * w;
    let mut weights = vec![0.0f32; n * MOMENTS * area];
    for (image, weights) in weights.chunks_exact_mut(MOMENTS * area).enumerate() {
        let directions = directions(field, image);
        for (position, moments) in directions.into_iter().enumerate() {
            for (moment, value) in moments.into_iter().enumerate() {
                weights[moment * area + position] = value;
            }
        }
    }
    let weights = TensorData::new(weights, [n, MOMENTS, area]);
    let weights = Tensor::<3>::from_data(weights, &features.device());
    // [n, 6, h w] x [n, h w, c]
    weights.matmul(features.reshape([n, area, c]))
}

/// What the features of each position of an image are multiplied with: cosine and sine of the angle,
/// of twice the angle, and the way from the centre; divided by the sum of the gate.
fn directions(field: &PoseField, image: usize) -> Vec<[f32; MOMENTS]> {
    let (grid, poses) = (field.grid(), field.poses());
    let gate = &field.confidence()[image * grid.len()..][..grid.len()];
    let sum = gate.iter().sum::<f32>() + NOTHING;
    let point = |at: usize| grid.point(at / grid.width, at % grid.width).map(|x| x as f32);
    let mean = |value: &dyn Fn([f32; 2]) -> f32| {
        gate.iter().enumerate().map(|(at, gate)| gate * value(point(at))).sum::<f32>() / sum
    };
    let centre = [mean(&|[x, _]| x), mean(&|[_, y]| y)];
    let extent = mean(&|[x, y]| (x - centre[0]).powi(2) + (y - centre[1]).powi(2)).sqrt() + NOTHING;
    let direction = |at: usize| {
        let mut moments = [0.0; MOMENTS];
        if gate[at] == 0.0 {
            return moments;
        }
        let first = (image * grid.len() + at) * poses;
        let own = field.angle()[first..].iter().zip(&field.weight()[first..]).take(poses);
        for (angle, weight) in own {
            for (pair, harmonic) in HARMONICS.into_iter().take(2).enumerate() {
                let (sin, cos) = (harmonic * angle).sin_cos();
                moments[2 * pair] += weight * cos / sum;
                moments[2 * pair + 1] += weight * sin / sum;
            }
        }
        let [x, y] = point(at);
        moments[4] = (x - centre[0]) / extent / sum;
        moments[5] = (y - centre[1]) / extent / sum;
        moments
    };
    (0..grid.len()).map(direction).collect()
}

/// Scores `[n, turns, classes]` of turns and classes -> scores of classes `[n, classes]`, whatever the
/// turn, if the part `upright` of images is not turned and the others by any angle.
pub fn over_turns(scores: Tensor<3>, upright: f64) -> Tensor<2> {
    let [n, turns, classes] = scores.dims();
    if turns == 1 {
        return scores.reshape([n, classes]);
    }
    let prior = prior(turns, upright, &scores.device());
    // The sum of exponentials, about their largest.
    let top = scores.clone().max_dim(1).detach();
    let sum = ((scores - top.clone()).exp() * prior).sum_dim(1);
    (sum.log() + top).reshape([n, classes])
}

/// How likely each turn makes an image upright, `[n, turns, classes]` -> `[n, turns]`, whatever the
/// class.
pub(super) fn turn_chances(scores: Tensor<3>, upright: f64) -> Tensor<2> {
    let ([n, turns, classes], device) = (scores.dims(), scores.device());
    let chances = softmax(scores.reshape([n, turns * classes]), 1).reshape([n, turns, classes]);
    let chances = (chances * prior(turns, upright, &device)).sum_dim(2).reshape([n, turns]);
    chances.clone() / chances.sum_dim(1)
}

/// The prior of every turn, `[1, turns, 1]`.
fn prior(turns: usize, upright: f64, device: &Device) -> Tensor<3> {
    let any = (1.0 - upright) / turns as f64;
    let mut prior = vec![any as f32; turns];
    prior[0] += upright as f32;
    Tensor::from_data(TensorData::new(prior, [1, turns, 1]), device)
}
