//! The canonicalised branch: a plain CNN that sees the image rotated upright by its likeliest
//! orientations. Ours.
//!
//! The number of orientations is fixed, so their cosines and sines are a table. Pixels are
//! interpolated by Keys' cubic with a = -1/2; the cubic of `GridSample` has a = -3/4.

use std::f64::consts::TAU;

use super::graph::{Graph, Operand, Value};
use super::heads::Scores;
use super::pose::border_mean;
use super::protobuf::{Attribute, ElementType};
use super::simconv::Features;
use crate::models::{Canonicalised, UNLIKELY};

/// Zeros around an image: cubic taps reach two pixels beyond one that lies outside.
const PAD: usize = 4;
/// Taps of the cubic along one axis.
const TAPS: usize = 4;

/// Orientations that make an image upright.
pub(super) struct Views {
    /// Number of the orientation, `[n, views]`.
    index: Value,
    /// Probability, `[n, views]`, with sum 1.
    share: Value,
    count: usize,
    orientations: usize,
}

impl Views {
    /// The likeliest orientations: peaks of the posterior, each with the probability of its
    /// neighbours.
    pub(super) fn likeliest(g: &mut Graph, scores: &Scores, rotations: usize) -> Self {
        let steps = scores.orientations;
        let posterior = scores.posterior(g);
        if steps < 3 {
            let zero = g.reduce("ReduceSum", &posterior, &[1], true);
            let zero = g.mul(&zero, 0.0);
            let (index, share) = (g.cast(&zero, ElementType::I64), g.add(&zero, 1.0));
            return Self { index, share, count: 1, orientations: steps };
        }
        // The last of equal peaks counts, and ArgMax takes the first: so they are in reverse order.
        let last = steps - 1;
        // The sum of three, in the order of the network's own: equal there, equal here.
        let [before, own, after] = [steps - 1, 0, 1].map(|by| {
            let index: Vec<i64> = (0..steps).map(|at| ((last - at + by) % steps) as i64).collect();
            let index = g.integers("neighbours", &[steps], &index);
            g.gather(&posterior, &index, 1)
        });
        let sum = g.add(&before, &own);
        let mut peaks = g.add(&sum, &after);
        // What shares an orientation with a peak is no other peak.
        let distance = |a: usize, b: usize| (a + steps - b) % steps;
        let is_other = |a: usize, b: usize| distance(a, b).min(distance(b, a)) > 2;
        let others = (0..steps * steps).map(|at| f32::from(is_other(at / steps, at % steps)));
        let others: Vec<f32> = others.collect();
        let others = g.floats("others", &[steps, steps], &others);
        let (mut index, mut share): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        // Peaks are three steps apart.
        let rotations = rotations.min(steps / 3);
        for view in 0..rotations {
            let best = g.op("ArgMax", &[&peaks], &[("axis", Attribute::Int(1))]);
            let mut probability = g.gather_elements(&peaks, &best, 1);
            if view > 0 {
                // Once one is unlikely, all that follow are.
                let unlikely = g.less(&probability, UNLIKELY);
                probability = g.select(&unlikely, 0.0, &probability);
            }
            if view + 1 < rotations {
                let row = g.reshape(&best, &[-1]);
                let keep = g.gather(&others, &row, 0);
                peaks = g.mul(&peaks, &keep);
            }
            index.push(g.sub(last as i64, &best));
            share.push(probability);
        }
        let index = g.concat(&index.iter().collect::<Vec<_>>(), 1);
        let share = g.concat(&share.iter().collect::<Vec<_>>(), 1);
        let sum = g.reduce("ReduceSum", &share, &[1], true);
        let share = g.div(&share, &sum);
        Self { index, share, count: rotations, orientations: steps }
    }

    /// Every image rotated by each of its views: `[n views, c, h, w]`. What comes in from outside has
    /// the mean colour of the border.
    pub(super) fn rotated(&self, g: &mut Graph, images: &Features) -> Features {
        let (grid, channels) = (images.grid, images.channels);
        let [height, width, c] = [grid.height, grid.width, channels];
        let (views, pixels) = (self.count as i64, (height * width) as i64);
        let padded = [height + 2 * PAD, width + 2 * PAD];
        let level = border_mean(g, &images.values, [height, width]);
        let relative = g.sub(&images.values, &level);
        let pad = PAD as i64;
        let pads = g.list(&[0, 0, pad, pad, 0, 0, pad, pad]);
        let relative = g.op("Pad", &[&relative, &pads], &[]);
        // One row per pixel of the batch: [n padded, c]
        let rows = g.transpose(&relative, &[0, 2, 3, 1]);
        let rows = g.reshape(&rows, &[-1, c as i64]);
        let first_row = self.first_rows(g, images, padded);
        let [x, y] = self.points(g, [height, width]);
        let (column, across) = taps(g, &x, width);
        let (row, down) = taps(g, &y, height);
        // Pixel of the first tap: [n views, h w]
        let line = g.mul(&row, padded[1] as i64);
        let corner = g.add(&line, &column);
        let corner = g.add(&corner, &first_row);
        let corner = g.reshape(&corner, &[0, pixels, 1]);
        let mut sum: Option<Value> = None;
        for tap in 0..TAPS {
            let start = (tap * padded[1]) as i64;
            let line: Vec<i64> = (start..start + TAPS as i64).collect();
            let line = g.integers("line", &[1, 1, TAPS], &line);
            let index = g.add(&corner, &line);
            // [n views, h w, 4, c] -> [n views, h w, c]
            let values = g.gather(&rows, &index, 0);
            let values = g.mul(&values, &across);
            let values = g.reduce("ReduceSum", &values, &[2], false);
            let weight = g.slice(&down, 2, tap, tap + 1);
            let weight = g.reshape(&weight, &[0, pixels, 1]);
            let values = g.mul(&values, &weight);
            sum = Some(match sum {
                None => values,
                Some(sum) => g.add(&sum, &values),
            });
        }
        let sum = sum.unwrap_or(rows);
        // [n, views, h w, c] + [n, 1, 1, c]
        let sum = g.reshape(&sum, &[-1, views, pixels, c as i64]);
        let level = g.reshape(&level, &[-1, 1, 1, c as i64]);
        let sum = g.add(&sum, &level);
        let sum = g.reshape(&sum, &[-1, height as i64, width as i64, c as i64]);
        let values = g.transpose(&sum, &[0, 3, 1, 2]);
        Features { values, channels, grid }
    }

    /// The first row of each view's image among the rows of all padded images, `[n views, 1]`.
    fn first_rows(&self, g: &mut Graph, images: &Features, padded: [usize; 2]) -> Value {
        let batch = g.batch(&images.values);
        let (zero, one) = (0i64.value(g), 1i64.value(g));
        let shape = g.list(&[]);
        let end = g.op("Reshape", &[&batch, &shape], &[]);
        let number = g.op("Range", &[&zero, &end, &one], &[]);
        let first = g.mul(&number, (padded[0] * padded[1]) as i64);
        let first = g.reshape(&first, &[-1, 1]);
        let none = g.integers("each", &[1, self.count], &vec![0; self.count]);
        let each = g.add(&first, &none);
        g.reshape(&each, &[-1, 1])
    }

    /// Where each pixel of a view comes from, x and y: `[n views, h w]` each.
    fn points(&self, g: &mut Graph, [height, width]: [usize; 2]) -> [Value; 2] {
        let steps = self.orientations;
        let circle = (0..steps).flat_map(|step| {
            // Right angles are exact: a quarter turn is (0, 1), not (6e-17, 1).
            let exact = |v: f64| if v.abs() < 1e-12 { 0.0 } else { v as f32 };
            let (sin, cos) = (TAU * step as f64 / steps as f64).sin_cos();
            [exact(cos), exact(sin)]
        });
        let circle = g.floats("circle", &[steps, 2], &circle.collect::<Vec<f32>>());
        let index = g.reshape(&self.index, &[-1]);
        let direction = g.gather(&circle, &index, 0);
        let [cos, sin] = [0, 1].map(|part| g.slice(&direction, 1, part, part + 1));
        let centre = [0.5 * (width as f64 - 1.0), 0.5 * (height as f64 - 1.0)];
        let [u, v] = [0, 1].map(|axis| {
            let at = |pixel: usize| [pixel % width, pixel / width][axis] as f64 - centre[axis];
            let from_centre: Vec<f32> = (0..height * width).map(|at_| at(at_) as f32).collect();
            g.floats(["u", "v"][axis], &[1, height * width], &from_centre)
        });
        // The inverse rotation: x = cos u + sin v, y = cos v - sin u
        let (cos_u, sin_v) = (g.mul(&cos, &u), g.mul(&sin, &v));
        let x = g.add(&cos_u, &sin_v);
        let (cos_v, sin_u) = (g.mul(&cos, &v), g.mul(&sin, &u));
        let y = g.sub(&cos_v, &sin_u);
        [g.add(&x, centre[0] as f32), g.add(&y, centre[1] as f32)]
    }

    /// Logits of the views `[n views, classes]` -> logarithm of their mean probability,
    /// `[n, classes]`.
    pub(super) fn mean(&self, g: &mut Graph, logits: &Value, classes: usize) -> Value {
        let probabilities = g.softmax(logits, 1);
        let probabilities = g.reshape(&probabilities, &[-1, self.count as i64, classes as i64]);
        let share = g.reshape(&self.share, &[-1, self.count as i64, 1]);
        let weighted = g.mul(&probabilities, &share);
        let mean = g.reduce("ReduceSum", &weighted, &[1], false);
        let mean = g.add(&mean, f32::MIN_POSITIVE);
        g.unary("Log", &mean)
    }
}

/// The first of four taps along an axis of `size` pixels, `[n views, h w]`, and the weights of all,
/// `[n views, h w, 4, 1]`.
fn taps(g: &mut Graph, x: &Value, size: usize) -> (Value, Value) {
    let cell = g.unary("Floor", x);
    let t = g.sub(x, &cell);
    let square = g.mul(&t, &t);
    let cube = g.mul(&square, &t);
    let ones = g.mul(&t, 0.0);
    let ones = g.add(&ones, 1.0);
    let powers = [&cube, &square, &t, &ones].map(|power| g.reshape(power, &[0, -1, 1]));
    let powers = g.concat(&powers.each_ref(), 2);
    // Keys' cubic with a = -1/2: one column per tap.
    #[rustfmt::skip]
    let keys = [
        -0.5,  1.5, -1.5,  0.5,
         1.0, -2.5,  2.0, -0.5,
        -0.5,  0.0,  0.5,  0.0,
         0.0,  1.0,  0.0,  0.0,
    ];
    let keys = g.floats("keys", &[4, 4], &keys);
    let weights = g.matmul(&powers, &keys);
    let weights = g.reshape(&weights, &[0, 0, 4, 1]);
    // Beyond these cells every tap is outside.
    let cell = g.clip(&cell, -3.0, size as f32 + 1.0);
    let cell = g.cast(&cell, ElementType::I64);
    (g.add(&cell, PAD as i64 - 1), weights)
}

/// Logits of classifier and branch -> logarithms of their weighted geometric mean.
pub(super) fn combine(g: &mut Graph, pair: &Canonicalised, [first, second]: [&Value; 2]) -> Value {
    let axis = [("axis", Attribute::Int(1))];
    let [first, second] = [first, second].map(|logits| g.op("LogSoftmax", &[logits], &axis));
    let first = g.mul(&first, (1.0 - pair.weight) as f32);
    let second = g.mul(&second, pair.weight as f32);
    g.add(&first, &second)
}
