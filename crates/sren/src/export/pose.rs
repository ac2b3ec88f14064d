//! The pose estimator (the paper's Section 4.1): from images to the pose field of a grid.
//!
//! The harmonics of rings are linear in the image, so they are convolutions; a second one, 1x1, makes
//! responses for every scale of them. What follows is the search for the highest interior maximum,
//! position by position, along the axis of scales.

use std::collections::BTreeMap;

use num_complex::Complex64;
use sren_kernels::pose::{Offset, ring_kernel};
use sren_math::{Grid, PoseSpec, Ramp, Ring};

use super::convolution::{Kernel, Placement, convolve, product};
use super::graph::{Graph, Value};
use super::protobuf::ElementType;
use crate::error::{Error, Result};

/// Rings that one convolution computes: those inside need smaller kernels.
const RINGS: usize = 8;
/// Above every score.
const NO_SCORE: f32 = 3e38;

/// The pose field of a grid. Every tensor is `[n, 1, h, w]`.
#[derive(Debug)]
pub(super) struct Field {
    /// The confidence; none: 1 everywhere.
    pub(super) gate: Option<Value>,
    /// The best poses, best first.
    pub(super) poses: Vec<Pose>,
    /// Scale, cosine, sine and confidence of the best, whatever the equivariance group.
    pub(super) estimate: Option<[Value; 4]>,
}

/// A pose of every position.
#[derive(Debug, Clone, Default)]
pub(super) struct Pose {
    /// Scale in pixels; none: 1.
    pub(super) scale: Option<Value>,
    /// Cosine and sine of the angle; none: 1 and 0.
    pub(super) direction: Option<[Value; 2]>,
    /// Weight among the poses of a position; none: 1.
    pub(super) weight: Option<Value>,
}

/// What poses are read from: luminance minus the mean of the border, `[n, 1, h, w]`.
pub(super) fn canvas(g: &mut Graph, images: &Value, channels: usize, pixels: &Grid) -> Value {
    let Grid { height, width, .. } = *pixels;
    let grey = match channels {
        1 => images.clone(),
        _ => g.scope("luminance", |g| {
            let weights = match channels {
                3 => vec![0.299, 0.587, 0.114],
                4 => vec![0.299, 0.587, 0.114, 0.0],
                _ => vec![1.0 / channels as f32; channels],
            };
            let weight = g.floats("weight", &[1, channels, 1, 1], &weights);
            product(g, images, &weight, None)
        }),
    };
    g.scope("border", |g| {
        let level = border_mean(g, &grey, [height, width]);
        g.sub(&grey, &level)
    })
}

/// The mean of the outermost pixels of each channel: `[n, c, h, w]` -> `[n, c, 1, 1]`.
pub(super) fn border_mean(g: &mut Graph, x: &Value, [height, width]: [usize; 2]) -> Value {
    let inner = |y: usize, x: usize| y > 0 && x > 0 && y + 1 < height && x + 1 < width;
    let outer = |at: usize| if inner(at / width, at % width) { 0.0 } else { 1.0 };
    let mask: Vec<f32> = (0..height * width).map(outer).collect();
    let count = mask.iter().sum::<f32>();
    let mask = g.floats("outermost", &[1, 1, height, width], &mask);
    let outermost = g.mul(x, &mask);
    let sum = g.reduce("ReduceSum", &outermost, &[2, 3], true);
    g.div(&sum, count)
}

/// The pose field on `grid` of a canvas of `pixels`.
pub(super) fn field(
    g: &mut Graph,
    spec: &PoseSpec,
    canvas: &Value,
    [pixels, grid]: [&Grid; 2],
) -> Result<Field> {
    let [(1, amplitude)] = spec.params().template.angular[..] else {
        let got = format!("{:?}", spec.params().template.angular);
        return Err(Error::shape("export", "a template of the first angular harmonic", got));
    };
    let rings = g.scope("rings", |g| rings(g, spec, canvas, [pixels, grid]));
    let [re, im] = g.scope("scales", |g| scales(g, spec, amplitude, &rings));
    let scores = g.scope("scores", |g| {
        let [re, im] = [&re, &im].map(|part| g.mul(part, part));
        let square = g.add(&re, &im);
        g.unary("Sqrt", &square)
    });
    let peaks = g.scope("peaks", |g| Peaks::find(g, spec, &scores));
    let poses = g.scope("pose", |g| peaks.poses(g, spec, [&re, &im]));
    let gate = g.scope("gate", |g| peaks.gate(g, spec, &scores));
    let estimate = match poses.first() {
        Some(Pose { scale: Some(scale), direction: Some([cos, sin]), .. }) => {
            Some([scale, cos, sin, &gate].map(Value::clone))
        }
        _ => None,
    };
    Ok(Field { gate: Some(gate), poses, estimate })
}

/// Harmonic 1 of every ring, outermost first: of each [`RINGS`] real parts, then imaginary parts;
/// `[n, 2 rings, h, w]`.
fn rings(g: &mut Graph, spec: &PoseSpec, canvas: &Value, [pixels, grid]: [&Grid; 2]) -> Value {
    let first = [grid.origin[1], grid.origin[0]].map(f64::floor);
    let fraction = [grid.origin[0] - first[1], grid.origin[1] - first[0]];
    let mut parts = Vec::new();
    for group in groups(spec.rings()) {
        let kernels: Vec<BTreeMap<Offset, Complex64>> =
            group.iter().map(|ring| ring_kernel(ring, 1, fraction)).collect();
        let offsets = || kernels.iter().flat_map(BTreeMap::keys).flatten().copied();
        let (low, high) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let side = (high - low + 1) as usize;
        let mut weight = vec![0.0f32; 2 * group.len() * side * side];
        for (ring, kernel) in kernels.iter().enumerate() {
            for ([y, x], value) in kernel {
                let at = (y - low) as usize * side + (x - low) as usize;
                weight[ring * side * side + at] = value.re as f32;
                weight[(group.len() + ring) * side * side + at] = value.im as f32;
            }
        }
        let weight = g.floats("weight", &[2 * group.len(), 1, side, side], &weight);
        let kernel = Kernel { weight, bias: None, side, dilation: 1 };
        let at = Placement {
            input: [pixels.height, pixels.width],
            output: [grid.height, grid.width],
            start: first.map(|first| first as i64 + i64::from(low)),
            stride: grid.step as usize,
        };
        parts.push(convolve(g, canvas, &kernel, &at));
    }
    match &parts[..] {
        [all] => all.clone(),
        parts => g.concat(&parts.iter().collect::<Vec<_>>(), 1),
    }
}

/// The rings, outermost first, that are computed together.
fn groups(rings: &[Ring]) -> impl Iterator<Item = &[Ring]> {
    rings.rchunks(RINGS)
}

/// The response of the template at every scale, real and imaginary part: `[n, scales, h, w]` each.
fn scales(g: &mut Graph, spec: &PoseSpec, amplitude: f64, rings: &Value) -> [Value; 2] {
    let (count, ring_count) = (spec.scales().len(), spec.rings().len());
    // [2 scales, 2 rings]
    let mut weight = vec![0.0f32; 4 * count * ring_count];
    let mut column = 0;
    let mut end = ring_count;
    for group in groups(spec.rings()) {
        let start = end - group.len();
        for part in 0..2 {
            for ring in start..end {
                for scale in 0..count {
                    let value = amplitude * spec.weights()[scale * ring_count + ring];
                    weight[(part * count + scale) * 2 * ring_count + column] = value as f32;
                }
                column += 1;
            }
        }
        end = start;
    }
    let weight = g.floats("weight", &[2 * count, 2 * ring_count, 1, 1], &weight);
    let responses = product(g, rings, &weight, None);
    [g.slice(&responses, 1, 0, count), g.slice(&responses, 1, count, 2 * count)]
}

/// The highest interior maxima over scale, refined by a parabola: `[n, peaks, h, w]`.
struct Peaks {
    count: usize,
    /// Of the highest sample, from the second one on.
    index: Value,
    /// From the highest sample to the maximum.
    offset: Value,
    /// -1 where there is no maximum.
    height: Value,
    /// Logarithm of the scale.
    log_scale: Value,
    /// Height of the best and whether there is one, `[n, 1, h, w]`; 1 where there is none.
    best: Value,
    exists: Value,
}

impl Peaks {
    fn find(g: &mut Graph, spec: &PoseSpec, scores: &Value) -> Self {
        let (params, scales) = (spec.params(), spec.scales().len());
        let left = g.slice(scores, 1, 0, scales - 2);
        let middle = g.slice(scores, 1, 1, scales - 1);
        let right = g.slice(scores, 1, 2, scales);
        let (rise, fall) = (g.sub(&middle, &left), g.sub(&middle, &right));
        // middle > left and middle >= right
        let (rises, climbs) = (g.greater(&rise, 0.0), g.less(&fall, 0.0));
        let falls = g.unary("Not", &climbs);
        let is_peak = g.op("And", &[&rises, &falls], &[]);
        let (slope, bend) = (g.sub(&rise, &fall), g.add(&rise, &fall));
        let bend = g.select(&is_peak, &bend, 1.0);
        let half = g.mul(&slope, 0.5);
        let offset = g.div(&half, &bend);
        let offset = g.clip(&offset, -0.5, 0.5);
        let quarter = g.mul(&slope, 0.25);
        let above = g.mul(&quarter, &offset);
        let height = g.add(&middle, &above);
        let height = g.select(&is_peak, &height, -1.0);
        // The runner-up is needed for the gate.
        let count = params.poses.max(2).min(scales - 2);
        let [height, index] = g.top(&height, count, 1);
        let offset = g.gather_elements(&offset, &index, 1);
        let location = g.cast(&index, ElementType::F32);
        let location = g.add(&location, &offset);
        let step = (params.max_scale / params.min_scale).ln() / (scales - 1) as f64;
        let log_scale = g.mul(&location, step as f32);
        let log_scale = g.add(&log_scale, (params.min_scale.ln() + step) as f32);
        let best = g.slice(&height, 1, 0, 1);
        let exists = g.greater(&best, 0.0);
        let best = g.select(&exists, &best, 1.0);
        Self { count, index, offset, height, log_scale, best, exists }
    }

    /// The poses at the peaks; 1 and upright where there is none.
    fn poses(&self, g: &mut Graph, spec: &PoseSpec, responses: [&Value; 2]) -> Vec<Pose> {
        let count = spec.params().poses.min(self.count);
        let mut poses: Vec<Pose> =
            (0..count).map(|peak| self.pose(g, spec, responses, peak)).collect();
        if count > 1 {
            let weights: Vec<Value> = poses.iter().filter_map(|pose| pose.weight.clone()).collect();
            let all = g.concat(&weights.iter().collect::<Vec<_>>(), 1);
            let sum = g.reduce("ReduceSum", &all, &[1], true);
            for pose in &mut poses {
                pose.weight = pose.weight.take().map(|weight| g.div(&weight, &sum));
            }
        } else {
            poses.iter_mut().for_each(|pose| pose.weight = None);
        }
        poses
    }

    fn pose(&self, g: &mut Graph, spec: &PoseSpec, responses: [&Value; 2], peak: usize) -> Pose {
        let of = |g: &mut Graph, values: &Value| g.slice(values, 1, peak, peak + 1);
        let (index, offset) = (of(g, &self.index), of(g, &self.offset));
        // Lagrange's polynomials on the three samples around the peak.
        let half = g.mul(&offset, 0.5);
        let before = g.sub(&offset, 1.0);
        let before = g.mul(&half, &before);
        let square = g.mul(&offset, &offset);
        let at = g.sub(1.0, &square);
        let after = g.add(&offset, 1.0);
        let after = g.mul(&half, &after);
        let weights = g.concat(&[&before, &at, &after], 1);
        let around = g.integers("around", &[1, 3, 1, 1], &[0, 1, 2]);
        let around = g.add(&index, &around);
        let [re, im] = responses.map(|part| {
            let samples = g.gather_elements(part, &around, 1);
            let weighted = g.mul(&samples, &weights);
            g.reduce("ReduceSum", &weighted, &[1], true)
        });
        let [square_re, square_im] = [&re, &im].map(|part| g.mul(part, part));
        let norm = g.add(&square_re, &square_im);
        let norm = g.unary("Sqrt", &norm);
        let height = of(g, &self.height);
        let (is_peak, turns) = (g.greater(&height, 0.0), g.greater(&norm, 0.0));
        let exists = g.op("And", &[&is_peak, &turns], &[]);
        let norm = g.select(&exists, &norm, 1.0);
        // The angle is minus that of the response.
        let cos = g.div(&re, &norm);
        let cos = g.select(&exists, &cos, 1.0);
        let im = g.unary("Neg", &im);
        let sin = g.div(&im, &norm);
        let sin = g.select(&exists, &sin, 0.0);
        let log_scale = of(g, &self.log_scale);
        let scale = g.unary("Exp", &log_scale);
        let scale = g.select(&is_peak, &scale, 1.0);
        let weight = (spec.params().poses > 1).then(|| {
            let part = g.div(&height, &self.best);
            let part = g.max(&part, 0.0);
            let sharpness = g.floats("sharpness", &[], &[spec.params().sharpness as f32]);
            let part = g.op("Pow", &[&part, &sharpness], &[]);
            // Where there is no pose at all, the first stands for it.
            let none = if peak == 0 { 1.0 } else { 0.0 };
            g.select(&is_peak, &part, none)
        });
        Pose { scale: Some(scale), direction: Some([cos, sin]), weight }
    }

    /// The confidence: the product of three ramps.
    fn gate(&self, g: &mut Graph, spec: &PoseSpec, scores: &Value) -> Value {
        let (params, scales) = (spec.params(), spec.scales().len());
        let prominence = g.scope("prominence", |g| {
            let index = g.slice(&self.index, 1, 0, 1);
            let index = g.add(&index, 1i64);
            let all: Vec<i64> = (0..scales as i64).collect();
            let all = g.integers("scale", &[1, scales, 1, 1], &all);
            let (below, above) = (g.less(&all, &index), g.greater(&all, &index));
            let [below, above] = [below, above].map(|side| {
                let side = g.select(&side, scores, NO_SCORE);
                g.reduce("ReduceMin", &side, &[1], true)
            });
            let base = g.max(&below, &above);
            let rise = g.sub(&self.best, &base);
            let part = g.div(&rise, &self.best);
            ramp(g, &part, params.gate.prominence)
        });
        let lead = g.scope("lead", |g| {
            let first = g.slice(scores, 1, 0, 1);
            let last = g.slice(scores, 1, scales - 1, scales);
            let mut runner_up = g.max(&first, &last);
            if self.count > 1 {
                let second = g.slice(&self.height, 1, 1, 2);
                runner_up = g.max(&runner_up, &second);
            }
            let part = g.div(&runner_up, &self.best);
            let lead = g.sub(1.0, &part);
            ramp(g, &lead, params.gate.lead)
        });
        let contrast = g.scope("contrast", |g| {
            let log_scale = g.slice(&self.log_scale, 1, 0, 1);
            let log_weight = g.mul(&log_scale, -params.template.q as f32);
            let weight = g.unary("Exp", &log_weight);
            let contrast = g.mul(&self.best, &weight);
            ramp(g, &contrast, params.gate.contrast)
        });
        let gate = g.mul(&prominence, &lead);
        let gate = g.mul(&gate, &contrast);
        g.select(&self.exists, &gate, 0.0)
    }
}

/// Smoothstep from 0 at `low` to 1 at `high`.
fn ramp(g: &mut Graph, x: &Value, Ramp { low, high }: Ramp) -> Value {
    let t = g.sub(x, low as f32);
    let t = g.mul(&t, (1.0 / (high - low)) as f32);
    let t = g.clip(&t, 0.0, 1.0);
    let square = g.mul(&t, &t);
    let twice = g.mul(&t, 2.0);
    let rest = g.sub(3.0, &twice);
    g.mul(&square, &rest)
}
