//! The layers that are measured.

use serde::Serialize;
use sren::{Equivariance, Frames, Grid, PoseField, Result};

/// Images in every measured batch.
pub const BATCH: usize = 32;

/// A convolution whose speed is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Layer {
    /// Its name in reports.
    pub name: &'static str,
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Height and width of the input.
    pub size: usize,
    /// Taps along one side of the kernel.
    pub kernel_size: usize,
    /// Stride of the output grid.
    pub stride: usize,
    /// Whether the gradient of the input is computed: not in a stem, whose input is the image.
    pub input_gradient: bool,
}

const fn inner(name: &'static str, channels: usize, size: usize) -> Layer {
    Layer { name, channels: [channels; 2], size, kernel_size: 3, stride: 1, input_gradient: true }
}

/// The layers of a residual network at four depths, and a stem on the image.
pub const LAYERS: [Layer; 5] = [
    inner("64ch 28x28", 64, 28),
    inner("128ch 14x14", 128, 14),
    inner("256ch 7x7", 256, 7),
    inner("16ch 56x56", 16, 56),
    Layer {
        name: "stem 7x7",
        channels: [1, 64],
        size: 56,
        kernel_size: 7,
        stride: 2,
        input_gradient: false,
    },
];

impl Layer {
    /// The grid of the input.
    pub fn input_grid(&self) -> Grid {
        Grid::pixels(self.size, self.size)
    }

    /// The grid of the output.
    pub fn output_grid(&self) -> Result<Grid> {
        Ok(self.input_grid().cell_centred(self.stride)?)
    }

    /// Frames of random poses, a scale of 0.7 to 1.7 and any angle at each position.
    pub fn frames(&self) -> Result<Frames> {
        random_frames(&[self.output_grid()?], BATCH)
    }
}

/// Frames of random poses on each of `grids`.
pub fn random_frames(grids: &[Grid], batch: usize) -> Result<Frames> {
    let field = |(seed, grid): (usize, &Grid)| {
        let count = batch * grid.len();
        let scale = random(2 * seed as u64 + 1, count).map(|v| 1.2 + 0.5 * v).collect();
        let angle = random(2 * seed as u64 + 2, count).map(|v| v * std::f32::consts::PI).collect();
        let ones = || vec![1.0; count];
        Ok(PoseField::new(*grid, batch, 1, scale, angle, ones(), ones())?)
    };
    let fields = grids.iter().enumerate().map(field).collect::<Result<_>>()?;
    Frames::new(fields, Equivariance::Similarity)
}

/// `count` reproducible numbers in -1..1 (xorshift64*).
pub(super) fn random(seed: u64, count: usize) -> impl Iterator<Item = f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count).map(move |_| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32 / (1 << 23) as f32 - 1.0
    })
}
