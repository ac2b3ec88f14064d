//! Global pools over all positions of an image: the two that are scale equivariant.

use rayon::prelude::*;
use sren_math::element_count;

use crate::buffer::zeros;
use crate::error::{KernelError, Result};
use crate::length::{check_channels, check_len};

/// Added to the sum of gates, so that an image without any active position gives zero.
pub const GATE_EPSILON: f32 = 1e-3;

/// A checked pool over `[batch, positions, channels]`.
///
/// ```
/// use sren_kernels::pool::GlobalPool;
///
/// # fn main() -> sren_kernels::Result<()> {
/// // One image of 3 positions and 2 channels.
/// let max = GlobalPool::new(1, 3, 2)?.max(&[1.0, 9.0, 5.0, 2.0, 3.0, 4.0])?;
/// assert_eq!((max.output, max.position), (vec![5.0, 9.0], vec![1, 0]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalPool {
    batch: usize,
    positions: usize,
    channels: usize,
    /// `batch * positions * channels`, checked.
    input_len: usize,
}

/// The maximum of each channel and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalMax {
    /// `[batch, channels]`.
    pub output: Vec<f32>,
    /// Position within the image of the first maximum, `[batch, channels]`.
    pub position: Vec<u32>,
}

impl GlobalPool {
    /// A pool over `positions` positions of each of `batch` images. Returns an error if there are no
    /// positions or channels, or if the input cannot exist in memory.
    pub fn new(batch: usize, positions: usize, channels: usize) -> Result<Self> {
        const OPERATION: &str = "GlobalPool";
        check_channels(OPERATION, channels)?;
        if positions == 0 || u32::try_from(positions).is_err() {
            let expected = "at least 1 position, fewer than 2^32";
            return Err(KernelError::invalid(OPERATION, expected, positions.to_string()));
        }
        let input_len = element_count(OPERATION, &[batch, positions, channels])?;
        Ok(Self { batch, positions, channels, input_len })
    }

    /// The maximum over the positions of `x` `[batch, positions, channels]`.
    pub fn max(&self, x: &[f32]) -> Result<GlobalMax> {
        check_len("GlobalPool::max", "input", x, self.input_len)?;
        let mut output = vec![0.0; self.batch * self.channels];
        let mut position = vec![0; self.batch * self.channels];
        output
            .par_chunks_exact_mut(self.channels)
            .zip(position.par_chunks_exact_mut(self.channels))
            .zip(x.par_chunks_exact(self.positions * self.channels))
            .for_each(|((best, at), image)| {
                best.copy_from_slice(&image[..self.channels]);
                for (index, row) in image.chunks_exact(self.channels).enumerate().skip(1) {
                    for ((best, at), &value) in best.iter_mut().zip(at.iter_mut()).zip(row) {
                        let better = value > *best;
                        *best = if better { value } else { *best };
                        *at = if better { index as u32 } else { *at };
                    }
                }
            });
        Ok(GlobalMax { output, position })
    }

    /// The gradient of [`max`](Self::max) with respect to its input, given the positions of the
    /// maxima.
    pub fn max_backward(&self, position: &[u32], grad_output: &[f32]) -> Result<Vec<f32>> {
        const OPERATION: &str = "GlobalPool::max_backward";
        check_len(OPERATION, "grad_output", grad_output, self.batch * self.channels)?;
        if position.len() != grad_output.len()
            || position.iter().any(|&p| p as usize >= self.positions)
        {
            let expected =
                format!("{} positions below {}", self.batch * self.channels, self.positions);
            let got = format!("{} up to {:?}", position.len(), position.iter().max());
            return Err(KernelError::invalid(OPERATION, expected, got));
        }
        let mut grad = zeros(self.input_len);
        for (index, (&at, &g)) in position.iter().zip(grad_output).enumerate() {
            let (image, channel) = (index / self.channels, index % self.channels);
            grad[(image * self.positions + at as usize) * self.channels + channel] = g;
        }
        Ok(grad)
    }

    /// `sum z / (sum gate + GATE_EPSILON)` over the positions: the weighted mean of features `z`
    /// `[batch, positions, channels]` that are already multiplied by the gate `[batch, positions]`.
    pub fn gated_mean(&self, z: &[f32], gate: &[f32]) -> Result<Vec<f32>> {
        const OPERATION: &str = "GlobalPool::gated_mean";
        check_len(OPERATION, "input", z, self.input_len)?;
        let factors = self.mean_factors(OPERATION, gate)?;
        let mut output = vec![0.0; self.batch * self.channels];
        output
            .par_chunks_exact_mut(self.channels)
            .zip(z.par_chunks_exact(self.positions * self.channels))
            .zip(&factors)
            .for_each(|((sum, image), factor)| {
                for row in image.chunks_exact(self.channels) {
                    sum.iter_mut().zip(row).for_each(|(sum, z)| *sum += z);
                }
                sum.iter_mut().for_each(|sum| *sum *= factor);
            });
        Ok(output)
    }

    /// The gradient of [`gated_mean`](Self::gated_mean) with respect to the features; the gate is a
    /// constant.
    pub fn gated_mean_backward(&self, gate: &[f32], grad_output: &[f32]) -> Result<Vec<f32>> {
        const OPERATION: &str = "GlobalPool::gated_mean_backward";
        check_len(OPERATION, "grad_output", grad_output, self.batch * self.channels)?;
        let factors = self.mean_factors(OPERATION, gate)?;
        let mut grad = zeros(self.input_len);
        grad.par_chunks_exact_mut(self.positions * self.channels)
            .zip(grad_output.par_chunks_exact(self.channels))
            .zip(&factors)
            .for_each(|((image, g), factor)| {
                for row in image.chunks_exact_mut(self.channels) {
                    row.iter_mut().zip(g).for_each(|(out, g)| *out = factor * g);
                }
            });
        Ok(grad)
    }

    /// `1 / (sum gate + GATE_EPSILON)` of each image.
    fn mean_factors(&self, operation: &'static str, gate: &[f32]) -> Result<Vec<f32>> {
        check_len(operation, "gate", gate, self.batch * self.positions)?;
        let images = gate.chunks_exact(self.positions);
        Ok(images.map(|gate| 1.0 / (gate.iter().sum::<f32>() + GATE_EPSILON)).collect())
    }
}
