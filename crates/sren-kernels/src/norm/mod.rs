//! Batch norm on channels-last rows, fused with the operations that usually follow it:
//!
//! ```text
//! out = gate relu(gamma (x - mean) / sqrt(variance + epsilon) + beta + residual)
//! ```
//! `gate`, `relu` and `residual` are optional. With a list of active rows, mean and variance are
//! those of the active rows, and all other rows of the output and of the gradients are exactly zero.

mod rows;

use self::rows::{Rows, fold};
use crate::error::{KernelError, Result};
use crate::length::{check_channels, check_len};

/// A checked batch norm over `channels` channels.
///
/// ```
/// use sren_kernels::norm::{Affine, BatchNorm, Mask};
///
/// # fn main() -> sren_kernels::Result<()> {
/// let norm = BatchNorm::new(1, 1e-5, false)?;
/// let x = [1.0, 3.0, 100.0];
/// // The last row is not active: it has no part in the statistics, and its output is zero.
/// let mask = Mask { active: Some(&[0, 1]), gate: None };
/// let statistics = norm.statistics(&x, mask.active)?;
/// assert_eq!((statistics.mean[0], statistics.variance[0]), (2.0, 1.0));
/// let affine = Affine { gamma: &[1.0], beta: &[0.0] };
/// let y = norm.forward(&x, affine, &statistics, None, mask)?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[1] - 1.0).abs() < 1e-4 && y[2] == 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNorm {
    channels: usize,
    epsilon: f32,
    relu: bool,
}

/// Mean and variance of the rows of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Mean of each channel.
    pub mean: Vec<f32>,
    /// Variance of each channel, the sum of squares divided by `count`.
    pub variance: Vec<f32>,
    /// Number of rows.
    pub count: usize,
}

/// The gradients of [`BatchNorm::backward`].
#[derive(Debug, Clone, PartialEq)]
pub struct NormGradients {
    /// `[rows, channels]`.
    pub input: Vec<f32>,
    /// `[channels]`.
    pub gamma: Vec<f32>,
    /// `[channels]`.
    pub beta: Vec<f32>,
    /// `[rows, channels]`, if requested.
    pub residual: Option<Vec<f32>>,
}

/// The learned scale and shift of each channel.
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a> {
    /// `[channels]`.
    pub gamma: &'a [f32],
    /// `[channels]`.
    pub beta: &'a [f32],
}

/// Active rows and their gates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mask<'a> {
    /// The active rows, ascending; all, if `None`.
    pub active: Option<&'a [u32]>,
    /// Factor of each row of the output, `[rows]`, 0 or greater.
    pub gate: Option<&'a [f32]>,
}

impl Statistics {
    /// Updates running averages with these statistics by `momentum`: the mean, and the unbiased
    /// variance (sum of squares over `count - 1`). Without rows nothing changes.
    pub fn update_running(
        &self,
        running_mean: &mut [f32],
        running_variance: &mut [f32],
        momentum: f32,
    ) -> Result<()> {
        const OPERATION: &str = "Statistics::update_running";
        check_len(OPERATION, "running_mean", running_mean, self.mean.len())?;
        check_len(OPERATION, "running_variance", running_variance, self.variance.len())?;
        if self.count == 0 {
            return Ok(());
        }
        let unbiased = self.count as f32 / (self.count.max(2) - 1) as f32;
        for (running, mean) in running_mean.iter_mut().zip(&self.mean) {
            *running += momentum * (mean - *running);
        }
        for (running, variance) in running_variance.iter_mut().zip(&self.variance) {
            *running += momentum * (unbiased * variance - *running);
        }
        Ok(())
    }
}

impl BatchNorm {
    /// A batch norm; `epsilon` is added to the variance, `relu` fuses the activation.
    pub fn new(channels: usize, epsilon: f32, relu: bool) -> Result<Self> {
        check_channels("BatchNorm", channels)?;
        if !(epsilon.is_finite() && epsilon > 0.0) {
            let got = epsilon.to_string();
            return Err(KernelError::invalid("BatchNorm", "a finite epsilon > 0", got));
        }
        Ok(Self { channels, epsilon, relu })
    }

    /// Mean and variance of `x` `[rows, channels]` over its active rows.
    pub fn statistics(&self, x: &[f32], active: Option<&[u32]>) -> Result<Statistics> {
        let rows = self.check_rows("BatchNorm::statistics", x, active)?;
        let c = self.channels;
        let count = rows.count();
        // Sums about the first row's values: variance stays precise where the mean is large.
        let first = match count {
            0 => return Ok(Statistics { mean: vec![0.0; c], variance: vec![0.0; c], count }),
            _ => &x[rows.get(0) * c..][..c],
        };
        let (wide, rows) = rows.widened(c);
        let first_wide = first.repeat(wide / c);
        let sums = rows.reduce(wide, |row, [sum, square]| {
            let (sum, square) = (&mut sum[..wide], &mut square[..wide]);
            let (x, first) = (&x[row * wide..][..wide], &first_wide[..wide]);
            for i in 0..wide {
                let d = x[i] - first[i];
                sum[i] += d;
                square[i] += d * d;
            }
        });
        let [sum, square] = sums.map(|sum| fold(sum, c));
        let n = count as f64;
        let mean = (0..c).map(|i| (first[i] as f64 + sum[i] / n) as f32).collect();
        let variance =
            (0..c).map(|i| (square[i] / n - (sum[i] / n).powi(2)).max(0.0) as f32).collect();
        Ok(Statistics { mean, variance, count })
    }

    /// Normalises `x` `[rows, channels]` with the given statistics (the batch's own in training,
    /// running averages in inference).
    pub fn forward(
        &self,
        x: &[f32],
        affine: Affine,
        statistics: &Statistics,
        residual: Option<&[f32]>,
        mask: Mask,
    ) -> Result<Vec<f32>> {
        const OPERATION: &str = "BatchNorm::forward";
        let rows = self.check_mask(OPERATION, x, mask)?;
        self.check_channels(OPERATION, affine, statistics)?;
        if let Some(residual) = residual {
            check_len(OPERATION, "residual", residual, x.len())?;
        }
        let c = self.channels;
        let inverse = self.inverse_deviation(statistics);
        let scale: Vec<f32> = affine.gamma.iter().zip(&inverse).map(|(g, i)| g * i).collect();
        let shift: Vec<f32> =
            (0..c).map(|i| affine.beta[i] - scale[i] * statistics.mean[i]).collect();
        let floor = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        // Unlike `max`, this propagates NaN, so that a diverged training is visible.
        let clip = |value: f32| if value < floor { floor } else { value };
        let (wide, rows) = if mask.gate.is_some() { (c, rows) } else { rows.widened(c) };
        let (scale, shift) = (scale.repeat(wide / c), shift.repeat(wide / c));
        let output = rows.build(wide, |row, out| {
            // Slices of equal length: the loops vectorise without bounds checks.
            let (scale, shift) = (&scale[..wide], &shift[..wide]);
            let (x, out) = (&x[row * wide..][..wide], &mut out[..wide]);
            let gate = mask.gate.map_or(1.0, |gate| gate[row]);
            match residual {
                None => {
                    for i in 0..wide {
                        out[i] = gate * clip(scale[i] * x[i] + shift[i]);
                    }
                }
                Some(residual) => {
                    let residual = &residual[row * wide..][..wide];
                    for i in 0..wide {
                        out[i] = gate * clip(scale[i] * x[i] + shift[i] + residual[i]);
                    }
                }
            }
        });
        Ok(output)
    }

    /// The gradients of training-mode [`forward`](Self::forward), where `statistics` are those of
    /// `x`. `output` is its result (used for the ReLU only); `need_residual` requests the gradient
    /// with respect to the residual.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        x: &[f32],
        output: &[f32],
        affine: Affine,
        statistics: &Statistics,
        grad_output: &[f32],
        need_residual: bool,
        mask: Mask,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "BatchNorm::backward";
        let rows = self.check_mask(OPERATION, x, mask)?;
        self.check_channels(OPERATION, affine, statistics)?;
        check_len(OPERATION, "grad_output", grad_output, x.len())?;
        if self.relu {
            check_len(OPERATION, "output", output, x.len())?;
        }
        if statistics.count != rows.count() {
            return Err(KernelError::invalid(
                OPERATION,
                format!("statistics over {} rows", rows.count()),
                statistics.count.to_string(),
            ));
        }
        let c = self.channels;
        let total = rows.count().max(1) as f64;
        let (wide, rows) = if mask.gate.is_some() { (c, rows) } else { rows.widened(c) };
        // First the gradient behind gate and ReLU, which is also that of the residual.
        let mut input = rows.build(wide, |row, out| {
            let (g, out) = (&grad_output[row * wide..][..wide], &mut out[..wide]);
            let gate = mask.gate.map_or(1.0, |gate| gate[row]);
            if self.relu {
                let y = &output[row * wide..][..wide];
                for i in 0..wide {
                    out[i] = if y[i] <= 0.0 { 0.0 } else { gate * g[i] };
                }
            } else {
                for i in 0..wide {
                    out[i] = gate * g[i];
                }
            }
        });
        let residual = need_residual.then(|| {
            rows.build(wide, |row, out| out.copy_from_slice(&input[row * wide..][..wide]))
        });
        let mean = statistics.mean.repeat(wide / c);
        let sums = rows.reduce(wide, |row, [beta, centred]| {
            let (beta, centred) = (&mut beta[..wide], &mut centred[..wide]);
            let (x, g) = (&x[row * wide..][..wide], &input[row * wide..][..wide]);
            let mean = &mean[..wide];
            for i in 0..wide {
                beta[i] += g[i];
                centred[i] += g[i] * (x[i] - mean[i]);
            }
        });
        let [beta, centred] = sums.map(|sum| fold(sum, c));
        let inverse = self.inverse_deviation(statistics);
        let gamma: Vec<f32> = (0..c).map(|i| (centred[i] * inverse[i] as f64) as f32).collect();
        // dx = gamma / sigma (g - mean(g) - (x - mean) / sigma^2 mean(g (x - mean)))
        let repeated = |value: &dyn Fn(usize) -> f32| -> Vec<f32> {
            (0..c).map(value).collect::<Vec<_>>().repeat(wide / c)
        };
        let scale = repeated(&|i| affine.gamma[i] * inverse[i]);
        let slope = repeated(&|i| (centred[i] / total * (inverse[i] as f64).powi(2)) as f32);
        let offset = repeated(&|i| (beta[i] / total) as f32);
        rows.for_each_mut(&mut input, wide, |row, out| {
            let (scale, slope, offset) = (&scale[..wide], &slope[..wide], &offset[..wide]);
            let (x, out, mean) = (&x[row * wide..][..wide], &mut out[..wide], &mean[..wide]);
            for i in 0..wide {
                out[i] = scale[i] * (out[i] - offset[i] - slope[i] * (x[i] - mean[i]));
            }
        });
        let beta = beta.iter().map(|&b| b as f32).collect();
        Ok(NormGradients { input, gamma, beta, residual })
    }

    fn inverse_deviation(&self, statistics: &Statistics) -> Vec<f32> {
        statistics.variance.iter().map(|v| 1.0 / (v + self.epsilon).sqrt()).collect()
    }

    fn check_rows<'a>(
        &self,
        operation: &'static str,
        x: &[f32],
        active: Option<&'a [u32]>,
    ) -> Result<Rows<'a>> {
        if !x.len().is_multiple_of(self.channels) {
            let expected = format!("rows of {} channels", self.channels);
            return Err(KernelError::invalid(operation, expected, format!("{} values", x.len())));
        }
        let total = x.len() / self.channels;
        if let Some(list) = active {
            let ascending = list.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascending || list.last().is_some_and(|&last| last as usize >= total) {
                let expected = format!("active rows ascending and below {total}");
                let got = format!("{} rows up to {:?}", list.len(), list.iter().max());
                return Err(KernelError::invalid(operation, expected, got));
            }
        }
        Ok(Rows { total, active })
    }

    fn check_mask<'a>(
        &self,
        operation: &'static str,
        x: &[f32],
        mask: Mask<'a>,
    ) -> Result<Rows<'a>> {
        let rows = self.check_rows(operation, x, mask.active)?;
        if let Some(gate) = mask.gate {
            check_len(operation, "gate", gate, rows.total)?;
        }
        Ok(rows)
    }

    fn check_channels(
        &self,
        operation: &'static str,
        affine: Affine,
        statistics: &Statistics,
    ) -> Result<()> {
        check_len(operation, "gamma", affine.gamma, self.channels)?;
        check_len(operation, "beta", affine.beta, self.channels)?;
        check_len(operation, "mean", &statistics.mean, self.channels)?;
        check_len(operation, "variance", &statistics.variance, self.channels)
    }
}
