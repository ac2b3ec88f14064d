//! A head that asks which way the image is turned.
//!
//! Mean and maximum over all positions forget how the frames of positions are turned against each
//! other and where they lie. The moments of the features f do not:
//!
//! ```text
//! z_mk = mean of f(x) d(x)^m e^(i k Gamma(x)),   d(x) = (x - centre) / extent, a complex number
//! ```
//! They turn with the image, m + k times as fast. Two layers see them turned by every step of a
//! circle, and give each class a score for each turn, `l(turn, class)`. If the image is turned by a
//! step, the rows of `l` move on by one, so `sum over turns of exp l` does not change: it is the
//! invariant answer. Training images stand upright, or it is known how they are turned, which tells
//! the network the row that is theirs; a prior for the upright row gives
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

/// The moments: powers m of the way from the centre and k of the frame's direction. Heads take the
/// first few.
const MOMENTS: [[i32; 2]; 7] = [[0, 1], [0, 2], [1, 0], [0, 3], [2, 0], [1, 1], [1, -1]];

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
    /// Moments of every feature that are looked at, 1 to 7; 3, if nothing is said.
    #[config(default = "None")]
    pub moments: Option<usize>,
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
    moments: usize,
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
        let (moments, hidden) = (self.moments(), self.channels);
        let turned = LinearConfig::new(2 * moments * channels, hidden).with_bias(false);
        Ok(Orientation {
            pooled: LinearConfig::new(pooled, hidden).init(device),
            turned: turned.init(device),
            turns: self.turns,
            upright: self.upright,
            moments,
        })
    }

    fn moments(&self) -> usize {
        self.moments.unwrap_or(3)
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
        if !(1..=MOMENTS.len()).contains(&self.moments()) {
            let expected = format!("1 to {} moments", MOMENTS.len());
            return Err(Error::shape(OPERATION, expected, self.moments().to_string()));
        }
        Ok(())
    }

    /// Learned values, for features of `channels` channels, `pooled` after the pool.
    pub(super) fn parameters(&self, channels: usize, pooled: usize) -> usize {
        let inputs =
            channels.saturating_mul(2 * self.moments()).saturating_add(pooled).saturating_add(1);
        inputs.saturating_mul(self.channels)
    }
}

impl Orientation {
    /// Turns that a network looks at: one, if it does not follow rotations.
    pub(super) fn turns(&self, equivariance: Equivariance) -> usize {
        if equivariance.follows_rotation() { self.turns } else { 1 }
    }

    /// Pooled features `[n, pooled]` and [moments](Self::moments)
    /// `[n, 2 moments, c]` -> `[n, turns, channels]`.
    ///
    /// With `W_x`, `W_y` for the parts of a pair z, turned by a, the layer gives
    /// `cos a (W_x z_x + W_y z_y) + sin a (W_y z_x - W_x z_y)`: two products a pair, not one a turn.
    pub(super) fn forward(
        &self,
        pooled: Tensor<2>,
        moments: Tensor<3>,
        equivariance: Equivariance,
    ) -> Tensor<3> {
        let ([n, _, c], count) = (moments.dims(), self.moments);
        let ([_, hidden], turns) = (self.turned.weight.dims(), self.turns(equivariance));
        // [n, 2 moments, c] -> [moments, n, 2, c], as it is and turned by a right angle
        let upright = moments.reshape([n, count, 2, c]).swap_dims(0, 1);
        let aside = Tensor::cat(
            vec![upright.clone().narrow(2, 1, 1).neg(), upright.clone().narrow(2, 0, 1)],
            2,
        );
        let both = [upright, aside].map(|moments| moments.reshape([count, n, 2 * c]));
        let weight = self.turned.weight.val().reshape([count, 2 * c, hidden]);
        // [moments, 2 n, 2 c] x [moments, 2 c, hidden] -> [n, 2 moments, hidden]
        let parts = Tensor::cat(both.to_vec(), 1).matmul(weight);
        let parts = parts.reshape([count, 2, n, hidden]).permute([2, 0, 1, 3]);
        let parts = parts.reshape([n, 2 * count, hidden]);
        // [n, turns, 2 moments] x [n, 2 moments, hidden]
        let circle = self.circle(turns, &parts.device()).expand([n, turns, 2 * count]);
        let turned = circle.matmul(parts);
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
        (pooled + 2 * moments + 2 * self.moments * turns) * hidden
    }

    /// The moments of features `[n, h, w, c]` that have the poses of `field`: `[n, 2 moments, c]`, real
    /// and imaginary parts. The features are those already multiplied with the gate.
    pub(super) fn moments(&self, features: Tensor<4>, field: &PoseField) -> Tensor<3> {
        let [n, h, w, c] = features.dims();
        let (area, parts) = (h * w, 2 * self.moments);
        let mut weights = vec![0.0f32; n * parts * area];
        for (image, weights) in weights.chunks_exact_mut(parts * area).enumerate() {
            for (position, place) in places(field, image).into_iter().enumerate() {
                for (moment, powers) in MOMENTS[..self.moments].iter().enumerate() {
                    let [real, imaginary] = place.moment(*powers);
                    weights[2 * moment * area + position] = real;
                    weights[(2 * moment + 1) * area + position] = imaginary;
                }
            }
        }
        let weights = TensorData::new(weights, [n, parts, area]);
        let weights = Tensor::<3>::from_data(weights, &features.device());
        // [n, 2 moments, h w] x [n, h w, c]
        weights.matmul(features.reshape([n, area, c]))
    }

    /// Cosine and sine of what the first `count` of all turns do to each moment:
    /// `[1, count, 2 moments]`.
    fn circle(&self, count: usize, device: &Device) -> Tensor<3> {
        let of_turn = |turn: usize| {
            let angle = TAU * turn as f32 / self.turns as f32;
            let moments = MOMENTS[..self.moments].iter();
            moments.map(move |[m, k]| ((m + k) as f32 * angle).sin_cos())
        };
        let values = (0..count).flat_map(of_turn).flat_map(|(sin, cos)| [cos, sin]);
        let shape = [1, count, 2 * self.moments];
        Tensor::from_data(TensorData::new(values.collect::<Vec<f32>>(), shape), device)
    }
}

type Complex = [f32; 2];

fn product([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

/// What the features of a position are multiplied with is made from its place: its weight in a mean
/// over all positions, its way from their centre, in units of their extent, and the directions of its
/// frames with their weights.
struct Place<'a> {
    weight: f32,
    way: Complex,
    angles: &'a [f32],
    weights: &'a [f32],
}

impl Place<'_> {
    fn moment(&self, [m, k]: [i32; 2]) -> Complex {
        if self.weight == 0.0 {
            return [0.0; 2];
        }
        let way = (0..m).fold([self.weight, 0.0], |power, _| product(power, self.way));
        let frames = self.angles.iter().zip(self.weights);
        frames.fold([0.0; 2], |[real, imaginary], (angle, weight)| {
            let (sin, cos) = (k as f32 * angle).sin_cos();
            let [a, b] = product(way, [weight * cos, weight * sin]);
            [real + a, imaginary + b]
        })
    }
}

/// The places of all positions of an image.
fn places(field: &PoseField, image: usize) -> Vec<Place<'_>> {
    let (grid, poses) = (field.grid(), field.poses());
    let gate = &field.confidence()[image * grid.len()..][..grid.len()];
    let sum = gate.iter().sum::<f32>() + NOTHING;
    let point = |at: usize| grid.point(at / grid.width, at % grid.width).map(|x| x as f32);
    let mean = |value: &dyn Fn([f32; 2]) -> f32| {
        gate.iter().enumerate().map(|(at, gate)| gate * value(point(at))).sum::<f32>() / sum
    };
    let centre = [mean(&|[x, _]| x), mean(&|[_, y]| y)];
    let extent = mean(&|[x, y]| (x - centre[0]).powi(2) + (y - centre[1]).powi(2)).sqrt() + NOTHING;
    let place = |at: usize| {
        let ([x, y], first) = (point(at), (image * grid.len() + at) * poses);
        Place {
            // Features have the gate already: what is closed counts nothing.
            weight: if gate[at] == 0.0 { 0.0 } else { 1.0 / sum },
            way: [(x - centre[0]) / extent, (y - centre[1]) / extent],
            angles: &field.angle()[first..][..poses],
            weights: &field.weight()[first..][..poses],
        }
    };
    (0..grid.len()).map(place).collect()
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
