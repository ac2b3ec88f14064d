//! The similarity convolution on plain slices, channels last.
//!
//! ```text
//! out(x) = sum_t f(x + kappa Lambda(x) R(Gamma(x)) t) phi(t)        t on the k x k grid
//! ```
//! The patch of a position (with several weighted poses: their mean) is gathered into a row of a
//! panel `[positions, k * k * c_in]`, tile by tile; a matrix product with the weight
//! `[k * k * c_in, c_out]` does the rest. The relative-pose kernel
//! `phi(t, d) = phi0(t) + phic(t) cos d + phis(t) sin d`, `d = Gamma(y) - Gamma(x)`, gathers
//! `(f, f cos d, f sin d)` and has a weight of `[k, k, 3 * c_in, c_out]`.

mod ahead;
mod backward;
mod forward;
mod gather;
#[cfg(target_arch = "x86_64")]
mod gather_vector;
mod inside;
mod kernel;
mod patches;
mod placement;
mod plan;
mod positions;
mod product;
#[cfg(target_arch = "x86_64")]
mod runs;
mod tile;
#[cfg(target_arch = "x86_64")]
mod vector;

pub use self::patches::patches;
use self::positions::Positions;
use self::product::Rows;
use crate::error::{KernelError, Result};
use crate::taps::TapTable;

/// Channel numbers and kind of kernel of a similarity convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimConv {
    c_in: usize,
    c_out: usize,
    relative_pose: bool,
}

/// What [`SimConv::backward`] gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `[batch, height_in, width_in, c_in]`, if it was asked for.
    pub input: Option<Vec<f32>>,
    /// `[k, k, c_in or 3 * c_in, c_out]`.
    pub weight: Vec<f32>,
    /// `[c_out]`.
    pub bias: Vec<f32>,
}

impl SimConv {
    /// A convolution from `c_in` to `c_out` channels; with `relative_pose`, its kernel also
    /// depends on the angle between the frames of the two positions.
    pub fn new(c_in: usize, c_out: usize, relative_pose: bool) -> Result<Self> {
        if c_in == 0 || c_out == 0 {
            let got = format!("{c_in} to {c_out}");
            return Err(KernelError::invalid("SimConv", "at least 1 channel each", got));
        }
        Ok(Self { c_in, c_out, relative_pose })
    }

    /// Channels of the input.
    pub fn c_in(&self) -> usize {
        self.c_in
    }

    /// Channels of the output.
    pub fn c_out(&self) -> usize {
        self.c_out
    }

    /// Whether the kernel depends on the relative angle.
    pub fn relative_pose(&self) -> bool {
        self.relative_pose
    }

    /// Values a tap contributes to a row of the panel.
    pub fn tap_width(&self) -> usize {
        if self.relative_pose { 3 * self.c_in } else { self.c_in }
    }

    /// Length of the weight `[k, k, tap_width, c_out]`, rows ordered (ky, kx, channel).
    pub fn weight_len(&self, kernel_size: usize) -> usize {
        kernel_size * kernel_size * self.tap_width() * self.c_out
    }

    /// Length of the input `[batch, height, width, c_in]`.
    pub fn input_len(&self, taps: &TapTable) -> usize {
        taps.batch() * taps.input_grid().len() * self.c_in
    }

    /// Length of the output `[batch, height, width, c_out]`.
    pub fn output_len(&self, taps: &TapTable) -> usize {
        taps.batch() * taps.output_grid().len() * self.c_out
    }

    /// The convolution of `input` `[batch, height, width, c_in]` with `weight`
    /// `[k, k, tap_width, c_out]` plus `bias` `[c_out]`: `[batch, height, width, c_out]`.
    /// Positions that are not active are exactly zero.
    pub fn forward(
        &self,
        taps: &TapTable,
        input: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
    ) -> Result<Vec<f32>> {
        const OPERATION: &str = "SimConv::forward";
        self.check(OPERATION, taps, input, weight)?;
        if let Some(bias) = bias {
            check_len(OPERATION, "bias", bias, self.c_out)?;
        }
        Ok(forward::forward(self, taps, input, weight, bias))
    }

    /// The gradients of a loss whose gradient by the output is `grad_output`. Without
    /// `need_input` the gradient by the input is left out (a stem's input is the image).
    pub fn backward(
        &self,
        taps: &TapTable,
        input: &[f32],
        weight: &[f32],
        grad_output: &[f32],
        need_input: bool,
    ) -> Result<Gradients> {
        const OPERATION: &str = "SimConv::backward";
        self.check(OPERATION, taps, input, weight)?;
        check_len(OPERATION, "grad_output", grad_output, self.output_len(taps))?;
        Ok(backward::backward(self, taps, input, weight, grad_output, need_input))
    }

    /// The short path: where every position reads exactly its own pixel, the pixels of
    /// consecutive positions are their panel.
    fn pixels_as_panel<'a>(
        &self,
        taps: &TapTable,
        input: &'a [f32],
        positions: Positions,
    ) -> Option<Rows<'a>> {
        match positions {
            Positions::Range(start, end) if taps.is_copy() && !self.relative_pose => {
                let values = &input[start * self.c_in..end * self.c_in];
                Some(Rows::new(values, end - start, self.c_in, self.c_in))
            }
            _ => None,
        }
    }

    fn check(
        &self,
        operation: &'static str,
        taps: &TapTable,
        input: &[f32],
        weight: &[f32],
    ) -> Result<()> {
        check_len(operation, "input", input, self.input_len(taps))?;
        check_len(operation, "weight", weight, self.weight_len(taps.kernel_size()))?;
        if self.relative_pose && !taps.has_input_poses() {
            return Err(KernelError::invalid(
                operation,
                "taps with input poses for a relative-pose kernel",
                "taps without",
            ));
        }
        Ok(())
    }
}

/// Refuses `values` of another length than `expected`.
pub(crate) fn check_len(
    operation: &'static str,
    name: &str,
    values: &[f32],
    expected: usize,
) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    let expected = format!("{expected} values of {name}");
    Err(KernelError::invalid(operation, expected, values.len().to_string()))
}
