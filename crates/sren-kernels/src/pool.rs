//! Pools over all positions of an image: the two that do not break scale equivariance.

use rayon::prelude::*;

use crate::buffer::zeros;
use crate::error::{KernelError, Result};
use crate::simconv::check_len;

/// Added to the sum of gates, so that an image without any active position gives zero.
pub const GATE_EPSILON: f32 = 1e-3;

/// A checked pool over `[batch, positions, channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalPool {
    batch: usize,
    positions: usize,
    channels: usize,
}

/// The maximum of each channel and where it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalMax {
    /// `[batch, channels]`.
    pub output: Vec<f32>,
    /// Position within the image of the first maximum, `[batch, channels]`.
    pub position: Vec<u32>,
}

impl GlobalPool {
    /// A pool over `positions` positions of each of `batch` images.
    pub fn new(batch: usize, positions: usize, channels: usize) -> Result<Self> {
        let expected = "at least 1 position, fewer than 2^32, and at least 1 channel";
        if positions == 0 || channels == 0 || u32::try_from(positions).is_err() {
            let got = format!("{positions} positions, {channels} channels");
            return Err(KernelError::invalid("GlobalPool", expected, got));
        }
        Ok(Self { batch, positions, channels })
    }

    /// The maximum over the positions of `x` `[batch, positions, channels]`.
    pub fn max(&self, x: &[f32]) -> Result<GlobalMax> {
        check_len("GlobalPool::max", "input", x, self.batch * self.positions * self.channels)?;
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

    /// The gradient of [`max`](Self::max) by its input, given where the maxima were.
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
        let mut grad = zeros(self.batch * self.positions * self.channels);
        for (index, (&at, &g)) in position.iter().zip(grad_output).enumerate() {
            let (image, channel) = (index / self.channels, index % self.channels);
            grad[(image * self.positions + at as usize) * self.channels + channel] = g;
        }
        Ok(grad)
    }

    /// `sum z / (sum gate + GATE_EPSILON)` over the positions: the mean of features `z`
    /// `[batch, positions, channels]` that the gate `[batch, positions]` has already multiplied.
    pub fn gated_mean(&self, z: &[f32], gate: &[f32]) -> Result<Vec<f32>> {
        const OPERATION: &str = "GlobalPool::gated_mean";
        check_len(OPERATION, "input", z, self.batch * self.positions * self.channels)?;
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

    /// The gradient of [`gated_mean`](Self::gated_mean) by the features; the gate is a constant.
    pub fn gated_mean_backward(&self, gate: &[f32], grad_output: &[f32]) -> Result<Vec<f32>> {
        const OPERATION: &str = "GlobalPool::gated_mean_backward";
        check_len(OPERATION, "grad_output", grad_output, self.batch * self.channels)?;
        let factors = self.mean_factors(OPERATION, gate)?;
        let mut grad = zeros(self.batch * self.positions * self.channels);
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
