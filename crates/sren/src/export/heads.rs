//! Heads: from the last feature map to scores `[n, orientations, classes]`, and from these to logits.

use burn::nn::Linear;
use sren_kernels::pool::GATE_EPSILON;
use sren_math::Grid;

use super::frames::Frames;
use super::graph::{Graph, Value};
use super::pose::Pose;
use super::simconv::{Features, values};
use crate::error::Result;
use crate::models::{AnyHead, Harmonics, Head, MOMENTS, OrientationHead, Pool};

/// A complex number of every position: real and imaginary part.
type Complex = [Value; 2];

/// Scores of every orientation and class.
pub(super) struct Scores {
    /// `[n, orientations, classes]`
    pub(super) values: Value,
    pub(super) orientations: usize,
    pub(super) classes: usize,
    /// The probability of each orientation before an image is seen.
    prior: Vec<f32>,
}

impl Scores {
    /// Marginalised over orientations: `[n, classes]`.
    pub(super) fn marginalise(&self, g: &mut Graph) -> Value {
        if self.orientations == 1 {
            return g.reshape(&self.values, &[0, self.classes as i64]);
        }
        // log-sum-exp, about the maximum
        let top = g.reduce("ReduceMax", &self.values, &[1], true);
        let below = g.sub(&self.values, &top);
        let exp = g.unary("Exp", &below);
        let prior = self.prior(g);
        let joint = g.mul(&exp, &prior);
        let sum = g.reduce("ReduceSum", &joint, &[1], true);
        let log = g.unary("Log", &sum);
        let logits = g.add(&log, &top);
        g.reshape(&logits, &[0, self.classes as i64])
    }

    /// The posterior probability of each orientation, `[n, orientations]`.
    pub(super) fn posterior(&self, g: &mut Graph) -> Value {
        let [orientations, classes] = [self.orientations, self.classes].map(|size| size as i64);
        let flat = g.reshape(&self.values, &[0, orientations * classes]);
        let joint = g.softmax(&flat, 1);
        let joint = g.reshape(&joint, &[0, orientations, classes]);
        let prior = self.prior(g);
        let joint = g.mul(&joint, &prior);
        let posterior = g.reduce("ReduceSum", &joint, &[2], false);
        let sum = g.reduce("ReduceSum", &posterior, &[1], true);
        g.div(&posterior, &sum)
    }

    fn prior(&self, g: &mut Graph) -> Value {
        g.floats("prior", &[1, self.orientations, 1], &self.prior)
    }
}

/// The scores of `features`.
pub(super) fn scores(
    g: &mut Graph,
    head: &AnyHead,
    features: &Features,
    frames: &mut Frames,
) -> Result<Scores> {
    let sum = Gates::of(g, features, frames)?;
    let (values, orientations, linear) = match head {
        AnyHead::Pooled(head) => {
            let pooled = pooled(g, head.pool, features, &sum);
            let linear = &head.linear;
            (g.scope("linear", |g| apply(g, linear, &pooled)), 1, linear)
        }
        AnyHead::Orientation(head) => {
            let pooled = pooled(g, head.pool, features, &sum);
            let field = frames.field(g, &features.grid)?;
            let moments = g.scope("moments", |g| moments(g, head, features, &sum, &field.poses));
            let orders = head.orders();
            let harmonics = Harmonics { orders: &orders, orientations: head.orientations };
            let orientations = harmonics.rows(frames.group());
            let layers = [&head.pooled, &head.moments];
            let hidden = hidden(g, (harmonics, orientations), layers, [&pooled, &moments]);
            let linear = &head.linear;
            (g.scope("linear", |g| apply(g, linear, &hidden)), orientations, linear)
        }
    };
    let classes = linear.weight.dims()[1];
    let values = g.reshape(&values, &[-1, orientations as i64, classes as i64]);
    let prior = crate::models::orientation_prior(orientations, head.upright_prior());
    Ok(Scores { values, orientations, classes, prior })
}

/// The hidden layer of the first few orientations, `[n, orientations, hidden]`, from pooled features
/// `[n, width]` and rotated moments `[n, 2 moments, c]`.
pub(super) fn hidden(
    g: &mut Graph,
    harmonics: (Harmonics, usize),
    [of_pooled, of_moments]: [&Linear; 2],
    [pooled, moments]: [&Value; 2],
) -> Value {
    g.scope("hidden", |g| {
        let rotated = rotated(g, harmonics, of_moments, moments);
        let pooled = apply(g, of_pooled, pooled);
        let axis = g.list(&[1]);
        let pooled = g.op("Unsqueeze", &[&pooled, &axis], &[]);
        let sum = g.add(&rotated, &pooled);
        g.unary("Relu", &sum)
    })
}

/// A linear layer on the last axis.
pub(super) fn apply(g: &mut Graph, layer: &Linear, x: &Value) -> Value {
    let [c_in, c_out] = layer.weight.dims();
    let weight = g.floats("weight", &[c_in, c_out], &values(&layer.weight));
    match &layer.bias {
        None => g.matmul(x, &weight),
        Some(bias) => {
            let bias = g.floats("bias", &[c_out], &values(bias));
            g.linear(x, &weight, &bias)
        }
    }
}

/// The gates of the features' positions.
struct Gates {
    /// `[n, positions]`, or `[1, positions]` if all are open.
    each: Value,
    /// Their sum, kept from 0: `[n, 1]`, or `[1, 1]`.
    sum: Value,
}

impl Gates {
    fn of(g: &mut Graph, features: &Features, frames: &mut Frames) -> Result<Self> {
        let (field, positions) = (frames.field(g, &features.grid)?, features.grid.len());
        Ok(g.scope("gates", |g| match &field.gate {
            None => {
                let sum = positions as f32 + GATE_EPSILON;
                Self {
                    each: g.floats("open", &[1, positions], &vec![1.0; positions]),
                    sum: g.floats("sum", &[1, 1], &[sum]),
                }
            }
            Some(gate) => {
                let each = g.reshape(gate, &[0, positions as i64]);
                let sum = g.reduce("ReduceSum", &each, &[1], true);
                let sum = g.add(&sum, GATE_EPSILON);
                Self { each, sum }
            }
        }))
    }

    /// The mean of `x` `[n or 1, positions]`, weighted with the gates: `[n or 1, 1]`.
    fn mean(&self, g: &mut Graph, x: &Value) -> Value {
        let weighted = g.mul(&self.each, x);
        let sum = g.reduce("ReduceSum", &weighted, &[1], true);
        g.div(&sum, &self.sum)
    }
}

/// `[n, c, h, w]` -> `[n, width]`
fn pooled(g: &mut Graph, pool: Pool, features: &Features, gates: &Gates) -> Value {
    g.scope("pool", |g| {
        let sum = g.reduce("ReduceSum", &features.values, &[2, 3], false);
        let mean = g.div(&sum, &gates.sum);
        match pool {
            Pool::Mean => mean,
            Pool::MaxMean => {
                let max = g.reduce("ReduceMax", &features.values, &[2, 3], false);
                g.concat(&[&max, &mean], 1)
            }
        }
    })
}

/// The moments of the features, real and imaginary parts: `[n, 2 moments, c]`.
fn moments(
    g: &mut Graph,
    head: &OrientationHead,
    features: &Features,
    gates: &Gates,
    poses: &[Pose],
) -> Value {
    let positions = features.grid.len() as i64;
    let offset = g.scope("offset", |g| offset(g, &features.grid, gates));
    let directions: Vec<(Complex, Option<Value>)> = poses
        .iter()
        .filter_map(|Pose { direction, weight, .. }| {
            let flat = |g: &mut Graph, x: &Value| g.reshape(x, &[0, positions]);
            let weight = weight.as_ref().map(|weight| flat(g, weight));
            Some((direction.as_ref()?.each_ref().map(|part| flat(g, part)), weight))
        })
        .collect();
    let mut parts = Vec::new();
    for [m, k] in &MOMENTS[..head.moment_count] {
        let moment = g.scope(&format!("d{m}e{k}"), |g| {
            let offset = power(g, &offset, *m);
            let direction = mean_power(g, &directions, *k);
            match (offset, direction) {
                (Some(offset), Some(direction)) => product(g, &offset, &direction),
                (Some(one), None) | (None, Some(one)) => one,
                // Of no offset and no direction: 1 at every position of every image.
                (None, None) => {
                    let zero = g.mul(&gates.each, 0.0);
                    [g.add(&zero, 1.0), zero]
                }
            }
        });
        parts.extend(moment.map(|part| g.reshape(&part, &[-1, 1, positions])));
    }
    let weights = g.concat(&parts.iter().collect::<Vec<_>>(), 1);
    // [n, 2 moments, positions] x [n, positions, c]
    let features = g.reshape(&features.values, &[0, features.channels as i64, positions]);
    let features = g.transpose(&features, &[0, 2, 1]);
    let sums = g.matmul(&weights, &features);
    let axis = g.list(&[2]);
    let total = g.op("Unsqueeze", &[&gates.sum, &axis], &[]);
    g.div(&sums, &total)
}

/// The offset of every position from the centre of the gates, in units of their extent.
fn offset(g: &mut Graph, grid: &Grid, gates: &Gates) -> Complex {
    let point = |at: usize| grid.point(at / grid.width, at % grid.width);
    let from_centre = [0, 1].map(|axis| {
        let along: Vec<f32> = (0..grid.len()).map(|at| point(at)[axis] as f32).collect();
        let along = g.floats(["x", "y"][axis], &[1, grid.len()], &along);
        let centre = gates.mean(g, &along);
        g.sub(&along, &centre)
    });
    let [x, y] = from_centre.each_ref().map(|part| g.mul(part, part));
    let square = g.add(&x, &y);
    let square = gates.mean(g, &square);
    let extent = g.unary("Sqrt", &square);
    let extent = g.add(&extent, GATE_EPSILON);
    from_centre.map(|part| g.div(&part, &extent))
}

fn product(g: &mut Graph, [a, b]: &Complex, [c, d]: &Complex) -> Complex {
    let (ac, bd) = (g.mul(a, c), g.mul(b, d));
    let (ad, bc) = (g.mul(a, d), g.mul(b, c));
    [g.sub(&ac, &bd), g.add(&ad, &bc)]
}

/// `z^k` of a number or, for negative k, of the conjugate of a number of length 1; none for `k = 0`.
fn power(g: &mut Graph, z: &Complex, k: i32) -> Option<Complex> {
    let mut all = z.clone();
    for _ in 1..k.unsigned_abs() {
        all = product(g, &all, z);
    }
    match k {
        0 => None,
        1.. => Some(all),
        _ => {
            let [re, im] = all;
            Some([re, g.unary("Neg", &im)])
        }
    }
}

/// The mean over the poses of a position of `e^(i k Gamma)`; none if that is 1.
fn mean_power(g: &mut Graph, directions: &[(Complex, Option<Value>)], k: i32) -> Option<Complex> {
    let mut sum: Option<Complex> = None;
    for (direction, weight) in directions {
        let mut term = power(g, direction, k)?;
        if let Some(weight) = weight {
            term = term.map(|part| g.mul(&part, weight));
        }
        sum = Some(match sum {
            None => term,
            Some([re, im]) => [g.add(&re, &term[0]), g.add(&im, &term[1])],
        });
    }
    sum
}

/// What the hidden layer gives for the moments, rotated by every orientation:
/// `[n, orientations, hidden]`. With `W_x`, `W_y` for the parts of a moment z, rotated by a, that is
/// `cos a (W_x z_x + W_y z_y) + sin a (W_y z_x - W_x z_y)`.
fn rotated(
    g: &mut Graph,
    (harmonics, rows): (Harmonics, usize),
    layer: &Linear,
    moments: &Value,
) -> Value {
    let (count, [inputs, hidden]) = (harmonics.orders.len(), layer.weight.dims());
    let channels = inputs / (2 * count);
    // [moments, 2, c, hidden] -> [moments, 2 c, 2 hidden]: [[W_x, W_y], [W_y, -W_x]]
    let own = values(&layer.weight);
    let mut weight = vec![0.0; 4 * count * channels * hidden];
    for (at, value) in own.into_iter().enumerate() {
        let (channel, column) = (at / hidden % channels, at % hidden);
        let (moment, part) = (at / hidden / channels / 2, at / hidden / channels % 2);
        let row = |half: usize| ((2 * moment + half) * channels + channel) * 2 * hidden + column;
        weight[row(part)] = value;
        weight[row(1 - part) + hidden] = if part == 0 { -value } else { value };
    }
    let [c, h, m] = [channels, hidden, count].map(|size| size as i64);
    let weight = g.floats("weight", &[count, 2 * channels, 2 * hidden], &weight);
    // [n, 2 moments, c] -> [moments, n, 2 c] -> [moments, n, 2 hidden] -> [n, 2 moments, hidden]
    let parts = g.reshape(moments, &[0, m, 2 * c]);
    let parts = g.transpose(&parts, &[1, 0, 2]);
    let parts = g.matmul(&parts, &weight);
    let parts = g.transpose(&parts, &[1, 0, 2]);
    let parts = g.reshape(&parts, &[0, 2 * m, h]);
    let circle = harmonics.circle(rows);
    let circle = g.floats("circle", &[rows, 2 * count], &circle);
    // [orientations, 2 moments] x [n, 2 moments, hidden]
    g.matmul(&circle, &parts)
}
