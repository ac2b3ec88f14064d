//! The similarity convolution by its definition in f64, and random layers to compare it on.
#![allow(dead_code)]

use sren_kernels::simconv::Gradients;
use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

/// A small generator of uniform numbers (xorshift), the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..8).for_each(|_| _ = random.unit());
        random
    }

    /// In 0..1.
    pub(crate) fn unit(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    /// In -1..1.
    pub(crate) fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| 2.0 * self.unit() - 1.0).collect()
    }
}

/// Fails if `got` is further from `expected` than `tolerance` times its largest value (at least 1).
#[track_caller]
pub(crate) fn close(got: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (index, (g, e)) in got.iter().zip(expected).enumerate() {
        let error = (*g as f64 - e).abs();
        assert!(error <= tolerance * largest, "{what}: {g} instead of {e} at {index}");
    }
}

/// A layer with its inputs and parameters.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) conv: SimConv,
    pub(crate) taps: TapTable,
    pub(crate) field: PoseField,
    pub(crate) input_field: PoseField,
    pub(crate) kernel_size: usize,
    pub(crate) active_only: bool,
    pub(crate) input: Vec<f32>,
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) grad_output: Vec<f32>,
}

pub(crate) struct ExactGradients {
    pub(crate) input: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) bias: Vec<f64>,
}

pub(crate) const KAPPA: f32 = 0.8;

fn random_field(random: &mut Random, grid: Grid, batch: usize, poses: usize) -> PoseField {
    let count = batch * grid.len();
    let scale = (0..count * poses).map(|_| 0.5 + 1.5 * random.unit()).collect();
    let angle = (0..count * poses).map(|_| 6.0 * (random.unit() - 0.5)).collect();
    let mut weight: Vec<f32> = (0..count * poses).map(|_| 0.1 + random.unit()).collect();
    for weight in weight.chunks_exact_mut(poses) {
        let sum: f32 = weight.iter().sum();
        weight.iter_mut().for_each(|w| *w /= sum);
    }
    let confidence = (0..count).map(|_| (2.0 * random.unit() - 1.0).max(0.0)).collect();
    PoseField::new(grid, batch, poses, scale, angle, weight, confidence).unwrap()
}

impl Layer {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn random(
        random: &mut Random,
        batch: usize,
        size: [usize; 2],
        stride: usize,
        kernel_size: usize,
        poses: usize,
        conv: SimConv,
        active_only: bool,
    ) -> Self {
        let grid = Grid::pixels(size[0], size[1]);
        let field = random_field(random, grid.cell_centred(stride).unwrap(), batch, poses);
        let input_field = random_field(random, grid, batch, 2);
        let taps = TapTable::new(&field, &grid, kernel_size, KAPPA, active_only).unwrap();
        let taps = taps.with_input_poses(&input_field).unwrap();
        Self {
            input: random.values(conv.input_len(&taps).unwrap()),
            weight: random.values(conv.weight_len(kernel_size).unwrap()),
            bias: random.values(conv.c_out()),
            grad_output: random.values(conv.output_len(&taps).unwrap()),
            conv,
            taps,
            field,
            input_field,
            kernel_size,
            active_only,
        }
    }

    /// The same layer with other poses of the output.
    pub(crate) fn set_field(&mut self, field: PoseField) {
        let grid = *self.taps.input_grid();
        self.field = field;
        let taps =
            TapTable::new(&self.field, &grid, self.kernel_size, KAPPA, self.active_only).unwrap();
        self.taps = taps.with_input_poses(&self.input_field).unwrap();
    }

    /// The field with only the given one of its poses.
    pub(crate) fn single_pose(&self, pose: usize) -> PoseField {
        let field = &self.field;
        let pick = |v: &[f32]| v.iter().skip(pose).step_by(field.poses()).copied().collect();
        PoseField::new(
            *field.grid(),
            field.batch(),
            1,
            pick(field.scale()),
            pick(field.angle()),
            vec![1.0; field.confidence().len()],
            field.confidence().to_vec(),
        )
        .unwrap()
    }

    pub(crate) fn forward(&self) -> Vec<f32> {
        self.conv.forward(&self.taps, &self.input, &self.weight, Some(&self.bias)).unwrap()
    }

    pub(crate) fn backward(&self, need_input: bool) -> Gradients {
        let (conv, taps) = (&self.conv, &self.taps);
        conv.backward(taps, &self.input, &self.weight, &self.grad_output, need_input).unwrap()
    }

    pub(crate) fn exact_forward(&self) -> Vec<f64> {
        let mut output: Vec<f64> = vec![0.0; self.conv.output_len(&self.taps).unwrap()];
        let c_out = self.conv.c_out();
        self.each_active(|position| {
            for (out, bias) in output[position * c_out..].iter_mut().zip(&self.bias) {
                *out = *bias as f64;
            }
        });
        self.each_term(|position, row, pixel, factor| {
            let f = factor * self.input[pixel] as f64;
            let weight = &self.weight[row * c_out..][..c_out];
            for (out, weight) in output[position * c_out..].iter_mut().zip(weight) {
                *out += f * *weight as f64;
            }
        });
        output
    }

    pub(crate) fn exact_gradients(&self) -> ExactGradients {
        let mut input = vec![0.0; self.input.len()];
        let mut weight = vec![0.0; self.weight.len()];
        let mut bias: Vec<f64> = vec![0.0; self.bias.len()];
        let c_out = self.conv.c_out();
        self.each_active(|position| {
            for (sum, g) in bias.iter_mut().zip(&self.grad_output[position * c_out..]) {
                *sum += *g as f64;
            }
        });
        self.each_term(|position, row, pixel, factor| {
            let grads = &self.grad_output[position * c_out..][..c_out];
            for (o, g) in grads.iter().enumerate() {
                let g = factor * *g as f64;
                input[pixel] += g * self.weight[row * c_out + o] as f64;
                weight[row * c_out + o] += g * self.input[pixel] as f64;
            }
        });
        ExactGradients { input, weight, bias }
    }

    fn each_active(&self, mut visit: impl FnMut(usize)) {
        for (position, confidence) in self.field.confidence().iter().enumerate() {
            if *confidence > 0.0 || !self.active_only {
                visit(position);
            }
        }
    }

    /// Visits every term of the sum: output position, row of the weight, input value, factor.
    fn each_term(&self, mut visit: impl FnMut(usize, usize, usize, f64)) {
        let (field, input) = (&self.field, self.taps.input_grid());
        let (grid, poses) = (field.grid(), field.poses());
        let (k, c) = (self.kernel_size as isize, self.conv.c_in());
        let width = self.conv.tap_width();
        self.each_active(|position| {
            let (image, cell) = (position / grid.len(), position % grid.len());
            let point = grid.point(cell / grid.width, cell % grid.width);
            let base = [0, 1].map(|a| (point[a] - input.origin[a]) / input.step);
            for pose in 0..poses {
                let at = position * poses + pose;
                let (angle, share) = (field.angle()[at] as f64, field.weight()[at] as f64);
                let spacing = KAPPA as f64 * field.scale()[at] as f64;
                for tap in 0..k * k {
                    let (tx, ty) = ((tap % k - k / 2) as f64, (tap / k - k / 2) as f64);
                    let x = base[0] + spacing * (angle.cos() * tx - angle.sin() * ty);
                    let y = base[1] + spacing * (angle.sin() * tx + angle.cos() * ty);
                    for (dy, dx) in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)] {
                        let (column, row) = (x.floor() + dx, y.floor() + dy);
                        let inside = (0.0..input.width as f64).contains(&column)
                            && (0.0..input.height as f64).contains(&row);
                        if !inside {
                            continue;
                        }
                        let share = share * (1.0 - (x - column).abs()) * (1.0 - (y - row).abs());
                        let pixel =
                            image * input.len() + row as usize * input.width + column as usize;
                        let angle_there =
                            self.input_field.angle()[pixel * self.input_field.poses()];
                        let difference = angle_there as f64 - angle;
                        let factors = [1.0, difference.cos(), difference.sin()];
                        for (block, factor) in factors.iter().take(width / c).enumerate() {
                            for channel in 0..c {
                                let row = tap as usize * width + block * c + channel;
                                visit(position, row, pixel * c + channel, share * factor);
                            }
                        }
                    }
                }
            }
        });
    }

    /// This layer on the image rotated by 90 degrees (x to y), for square grids.
    pub(crate) fn rotated(&self) -> Self {
        let mut rotated = self.clone();
        rotated.input = self.rotate_map(&self.input, self.conv.c_in());
        rotated.input_field = self.rotate_field(&self.input_field);
        rotated.set_field(self.rotate_field(&self.field));
        rotated
    }

    fn rotate_field(&self, field: &PoseField) -> PoseField {
        let poses = field.poses();
        let angle = self.rotate_map(field.angle(), poses);
        PoseField::new(
            *field.grid(),
            field.batch(),
            poses,
            self.rotate_map(field.scale(), poses),
            angle.iter().map(|a| (*a as f64 + std::f64::consts::FRAC_PI_2) as f32).collect(),
            self.rotate_map(field.weight(), poses),
            self.rotate_map(field.confidence(), 1),
        )
        .unwrap()
    }

    /// Rotates maps `[batch, size, size, channels]` by 90 degrees: (x, y) to (-y, x) about the centre.
    pub(crate) fn rotate_map(&self, values: &[f32], channels: usize) -> Vec<f32> {
        let area = values.len() / channels / self.taps.batch();
        let size = area.isqrt();
        let mut out = vec![0.0; values.len()];
        for (index, from) in values.chunks_exact(channels).enumerate() {
            let (image, x, y) = (index / area, index % area % size, index % area / size);
            let to = image * area + x * size + (size - 1 - y);
            out[to * channels..][..channels].copy_from_slice(from);
        }
        out
    }
}
