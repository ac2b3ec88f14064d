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

mod backward;
mod forward;
mod gather;
#[cfg(target_arch = "x86_64")]
mod gather_vector;
mod inside;
mod kernel;
mod locations;
mod patches;
mod plan;
mod positions;
mod prefetch;
mod product;
#[cfg(target_arch = "x86_64")]
mod runs;
mod tile;
#[cfg(target_arch = "x86_64")]
mod vector;

use sren_math::element_count;

pub use self::patches::patches;
use self::positions::Positions;
use self::product::Rows;
use crate::error::{KernelError, Result};
use crate::length::{check_channels, check_len};
use crate::taps::TapTable;

/// Channel numbers and kind of kernel of a similarity convolution.
///
/// ```
/// use sren_kernels::{PoseField, SimConv, TapTable};
/// use sren_math::Grid;
///
/// # fn main() -> sren_kernels::Result<()> {
/// // Two 8 x 8 images of 3 channels, frames of scale 1.5 rotated by 0.4 radians.
/// let grid = Grid::pixels(8, 8);
/// let n = 2 * grid.len();
/// let (scale, angle) = (vec![1.5; n], vec![0.4; n]);
/// let field = PoseField::new(grid, 2, 1, scale, angle, vec![1.0; n], vec![1.0; n])?;
/// let taps = TapTable::new(&field, &grid, 3, 1.0, false)?;
///
/// let conv = SimConv::new(3, 16, false)?;
/// let input = vec![0.5; conv.input_len(&taps)?];
/// let weight = vec![0.1; conv.weight_len(3)?];
/// let output = conv.forward(&taps, &input, &weight, Some(&[0.0; 16]))?;
/// assert_eq!(output.len(), conv.output_len(&taps)?);
/// // In the interior all 9 * 3 samples are 0.5.
/// assert!((output[(4 * 8 + 4) * 16] - 27.0 * 0.05).abs() < 1e-5);
///
/// let gradients = conv.backward(&taps, &input, &weight, &output, true)?;
/// assert_eq!(gradients.weight.len(), weight.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimConv {
    c_in: usize,
    c_out: usize,
    relative_pose: bool,
}

/// The gradients of [`SimConv::backward`].
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `[batch, height_in, width_in, c_in]`, if requested.
    pub input: Option<Vec<f32>>,
    /// `[k, k, c_in or 3 * c_in, c_out]`.
    pub weight: Vec<f32>,
    /// `[c_out]`.
    pub bias: Vec<f32>,
}

impl SimConv {
    /// A convolution from `c_in` to `c_out` channels; with `relative_pose`, its kernel also
    /// depends on the angle between the frames of the two positions. Returns an error if a channel
    /// number is not in 1..=2^20.
    pub fn new(c_in: usize, c_out: usize, relative_pose: bool) -> Result<Self> {
        check_channels("SimConv", c_in)?;
        check_channels("SimConv", c_out)?;
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
    pub fn weight_len(&self, kernel_size: usize) -> Result<usize> {
        let shape = [kernel_size, kernel_size, self.tap_width(), self.c_out];
        Ok(element_count("SimConv::weight_len", &shape)?)
    }

    /// Length of the input `[batch, height, width, c_in]`.
    pub fn input_len(&self, taps: &TapTable) -> Result<usize> {
        let shape = [taps.batch(), taps.input_grid().len(), self.c_in];
        Ok(element_count("SimConv::input_len", &shape)?)
    }

    /// Length of the output `[batch, height, width, c_out]`.
    pub fn output_len(&self, taps: &TapTable) -> Result<usize> {
        let shape = [taps.batch(), taps.output_grid().len(), self.c_out];
        Ok(element_count("SimConv::output_len", &shape)?)
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
        let output_len = self.output_len(taps)?;
        Ok(forward::forward(self, taps, input, weight, bias, output_len))
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
        check_len(OPERATION, "grad_output", grad_output, self.output_len(taps)?)?;
        Ok(backward::backward(self, taps, input, weight, grad_output, need_input))
    }

    /// The panel of consecutive positions without a gather: their pixels, where every position reads
    /// exactly its own pixel.
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
        check_len(operation, "input", input, self.input_len(taps)?)?;
        check_len(operation, "weight", weight, self.weight_len(taps.kernel_size())?)?;
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
