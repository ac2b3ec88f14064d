//! The similarity convolution with its batch norm (the paper's Sections 4.2 and 4.3).
//!
//! Batch norm by running averages is a scale and a shift of each channel: both go into the kernel.
//! The convolution itself samples the taps of every position (`GridSample`) and multiplies, or is a
//! `DeformConv`, which does both.

use burn::module::Param;
use burn::tensor::Tensor;
use sren_math::Grid;

use super::Taps;
use super::convolution::{Kernel, plain, product};
use super::frames::Frames;
use super::graph::{Graph, Value};
use super::pose::Pose;
use super::protobuf::Attribute;
use crate::error::Result;
use crate::layers::{MaskedBatchNorm, SimConv2d};
use crate::pose::TapLayout;

/// Features `[n, channels, h, w]` on a grid.
#[derive(Debug, Clone)]
pub(super) struct Features {
    pub(super) values: Value,
    pub(super) channels: usize,
    pub(super) grid: Grid,
}

/// The values of a parameter.
pub(super) fn values<const D: usize>(parameter: &Param<Tensor<D>>) -> Vec<f32> {
    parameter.val().into_data().iter::<f32>().collect()
}

/// A kernel in the order of ONNX, with the scale and shift of a batch norm.
pub(super) struct Folded {
    /// `[c_out, c_in, k, k]`; of a relative-pose kernel `[c_out, 3 c_in, k, k]`.
    weight: Vec<f32>,
    bias: Vec<f32>,
    channels: [usize; 2],
    side: usize,
}

impl Folded {
    pub(super) fn new(conv: &SimConv2d, norm: Option<&MaskedBatchNorm>) -> Self {
        let [side, _, c_in, c_out] = conv.weight.dims();
        let (scale, shift) = match norm {
            Some(norm) => norm.scale_and_shift(),
            None => (vec![1.0; c_out], vec![0.0; c_out]),
        };
        let taps = side * side;
        let mut weight = vec![0.0; taps * c_in * c_out];
        // [k, k, c_in, c_out] -> [c_out, c_in, k, k]
        for (at, value) in values(&conv.weight).into_iter().enumerate() {
            let (tap, input, output) = (at / c_out / c_in, at / c_out % c_in, at % c_out);
            weight[(output * c_in + input) * taps + tap] =
                (f64::from(value) * scale[output]) as f32;
        }
        let own = conv.bias.as_ref().map_or(vec![0.0; c_out], values);
        let bias = own.iter().zip(&scale).zip(&shift);
        let bias = bias.map(|((own, scale), shift)| (f64::from(*own) * scale + shift) as f32);
        Self { weight, bias: bias.collect(), channels: [c_in, c_out], side }
    }

    /// A relative-pose kernel where all frames have one direction: the cosine is 1, the sine 0.
    fn of_equal_directions(mut self) -> Self {
        let ([c_in, c_out], taps) = (self.channels, self.side * self.side);
        let part = c_in / 3 * taps;
        let rows = self.weight.chunks_exact(c_in * taps);
        let sum = |row: &[f32]| -> Vec<f32> {
            row[..part].iter().zip(&row[part..2 * part]).map(|(f, cos)| f + cos).collect()
        };
        self.weight = rows.flat_map(sum).collect();
        self.channels = [c_in / 3, c_out];
        self
    }

    pub(super) fn c_out(&self) -> usize {
        self.channels[1]
    }

    /// The kernel as constants, `[c_out, c_in, k, k]`.
    pub(super) fn kernel(&self, g: &mut Graph, dilation: usize) -> Kernel {
        let ([c_in, c_out], side) = (self.channels, self.side);
        let weight = g.floats("weight", &[c_out, c_in, side, side], &self.weight);
        let bias = Some(g.floats("bias", &[c_out], &self.bias));
        Kernel { weight, bias, side, dilation }
    }

    /// The product with samples `[n, c_in, positions, taps]`: `[n, c_out, h, w]` on `grid`.
    fn product(&self, g: &mut Graph, samples: &Value, grid: &Grid) -> Value {
        let ([c_in, c_out], taps) = (self.channels, self.side * self.side);
        let weight = g.floats("weight", &[c_out, c_in, 1, taps], &self.weight);
        let bias = g.floats("bias", &[c_out], &self.bias);
        let product = product(g, samples, &weight, Some(&bias));
        let [height, width] = [grid.height, grid.width].map(|size| size as i64);
        g.reshape(&product, &[0, c_out as i64, height, width])
    }
}

/// The convolution and its batch norm, without ReLU and gate.
pub(super) fn simconv(
    g: &mut Graph,
    conv: &SimConv2d,
    norm: Option<&MaskedBatchNorm>,
    input: &Features,
    frames: &mut Frames,
    how: Taps,
) -> Result<Features> {
    let output = conv.output_grid(&input.grid)?;
    let (mut folded, layout) = (Folded::new(conv, norm), conv.layout());
    let field = frames.field(g, &output)?;
    let is_rotated = field.poses.iter().any(|pose| pose.direction.is_some());
    if layout.relative_pose && !is_rotated {
        folded = folded.of_equal_directions();
    }
    let channels = folded.c_out();
    let grids = [&input.grid, &output];
    let is_plain = field.poses.iter().all(|p| p.direction.is_none() && p.scale.is_none());
    let values = if is_plain || layout.kernel_size == 1 {
        let kernel = folded.kernel(g, layout.dilation);
        plain(g, &input.values, &kernel, grids)
    } else if how == Taps::Deform && field.poses.len() == 1 && !layout.relative_pose {
        deform(g, &folded, &input.values, grids, layout, frames)?
    } else {
        let samples = match layout.relative_pose && is_rotated {
            true => relative_samples(g, input, &output, layout, frames)?,
            false => weighted(g, &field.poses, |g, pose| {
                frames.sample(g, &input.values, grids, layout, pose)
            })?,
        };
        folded.product(g, &samples, &output)
    };
    Ok(Features { values, channels, grid: output })
}

/// The sum over poses of what `sample` gives for each, `[n, c, positions, taps]`, with their weights.
pub(super) fn weighted(
    g: &mut Graph,
    poses: &[Pose],
    mut sample: impl FnMut(&mut Graph, usize) -> Result<Value>,
) -> Result<Value> {
    let mut sum = None;
    for (index, pose) in poses.iter().enumerate() {
        let mut samples = sample(g, index)?;
        if let Some(weight) = &pose.weight {
            let weight = by_position(g, weight);
            samples = g.mul(&samples, &weight);
        }
        sum = Some(match sum {
            None => samples,
            Some(sum) => g.add(&sum, &samples),
        });
    }
    sum.ok_or_else(|| crate::Error::shape("export", "at least 1 pose", "none"))
}

/// `[n, 1, h, w]` -> `[n, 1, positions, 1]`
fn by_position(g: &mut Graph, x: &Value) -> Value {
    g.reshape(x, &[0, 1, -1, 1])
}

/// Samples f, f cos d and f sin d, with d the angle of the sampled position's frame relative to the
/// reader's: `[n, 3 c, positions, taps]`.
fn relative_samples(
    g: &mut Graph,
    input: &Features,
    output: &Grid,
    layout: TapLayout,
    frames: &mut Frames,
) -> Result<Value> {
    let x = &input.values;
    let own = frames.field(g, &input.grid)?;
    let Some([cos, sin]) = &own.poses[0].direction else {
        return Err(crate::Error::shape("export", "frames with directions", "none"));
    };
    // d = a - b: cos d = cos a cos b + sin a sin b, sin d = sin a cos b - cos a sin b
    let (x_cos, x_sin) = (g.mul(x, cos), g.mul(x, sin));
    let parts = g.concat(&[x, &x_cos, &x_sin], 1);
    let field = frames.field(g, output)?;
    let c = input.channels;
    weighted(g, &field.poses, |g, index| {
        let all = frames.sample(g, &parts, [&input.grid, output], layout, index)?;
        let [f, f_cos, f_sin] = [0, 1, 2].map(|part| g.slice(&all, 1, part * c, (part + 1) * c));
        let Some(direction) = &field.poses[index].direction else { return Ok(all) };
        let [cos, sin] = direction.each_ref().map(|part| by_position(g, part));
        let (one, two) = (g.mul(&f_cos, &cos), g.mul(&f_sin, &sin));
        let cosine = g.add(&one, &two);
        let (one, two) = (g.mul(&f_sin, &cos), g.mul(&f_cos, &sin));
        let sine = g.sub(&one, &two);
        Ok(g.concat(&[&f, &cosine, &sine], 1))
    })
}

/// As one `DeformConv`: its taps are those of the plain convolution plus offsets.
fn deform(
    g: &mut Graph,
    folded: &Folded,
    x: &Value,
    [input, output]: [&Grid; 2],
    layout: TapLayout,
    frames: &mut Frames,
) -> Result<Value> {
    let kernel = folded.kernel(g, 1);
    let (side, stride) = (layout.kernel_size, (output.step / input.step).round() as i64);
    let offsets = frames.offsets(g, [input, output], layout)?;
    let before = (side / 2) as i64;
    let after = |input: usize, output: usize| {
        (stride * (output as i64 - 1) + side as i64 - input as i64 - before).max(0)
    };
    let pads =
        vec![before, before, after(input.height, output.height), after(input.width, output.width)];
    let attributes = [
        ("kernel_shape", Attribute::Ints(vec![side as i64; 2])),
        ("strides", Attribute::Ints(vec![stride; 2])),
        ("pads", Attribute::Ints(pads)),
    ];
    let inputs: Vec<&Value> =
        [x, &kernel.weight, &offsets].into_iter().chain(&kernel.bias).collect();
    Ok(g.op("DeformConv", &inputs, &attributes))
}
