//! The similarity convolution as a layer.

use burn::backend::Dispatch;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Initializer, Module, ModuleDisplay, Param};
use burn::tensor::{DType, Device, Tensor};
use sren_kernels::{SimConv, TapTable};
use sren_math::Grid;

use crate::error::{Error, Result};
use crate::frames::Frames;
use crate::ops::{ConvPlan, SimilarityOps};

/// He initialisation: `sqrt(2 / fan_in)`.
const HE: Initializer =
    Initializer::KaimingNormal { gain: std::f64::consts::SQRT_2, fan_out_only: false };

/// Configuration of a [similarity convolution](SimConv2d).
#[derive(Config, Debug)]
pub struct SimConv2dConfig {
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Taps along one side of the kernel, odd.
    pub kernel_size: usize,
    /// Every how many-th cell of the input grid the output grid has.
    #[config(default = 1)]
    pub stride: usize,
    /// Distance of neighbouring taps, in steps of the input grid, for a pose of scale 1.
    #[config(default = 1.0)]
    pub kappa: f64,
    /// Whether a bias is added. Needless before a batch norm.
    #[config(default = true)]
    pub bias: bool,
    /// Whether the kernel also depends on the angle between the frames of the two positions
    /// (first harmonics, three times the weights).
    #[config(default = false)]
    pub relative_pose: bool,
    /// How weights are drawn. Biases begin at 0.
    #[config(default = "HE")]
    pub initializer: Initializer,
}

/// `out(x) = sum_t f(x + kappa Lambda(x) R(Gamma(x)) t) phi(t)`: a convolution in the frame of each
/// position, channels last. Made by [`SimConv2dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SimConv2d {
    /// `[k, k, c_in, c_out]`, or `[k, k, 3 * c_in, c_out]` with a relative-pose kernel.
    pub weight: Param<Tensor<4>>,
    /// `[c_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    channels_in: usize,
    stride: usize,
    kappa: f64,
    relative_pose: bool,
}

impl SimConv2dConfig {
    /// A new layer on `device`.
    pub fn init(&self, device: &Device) -> Result<SimConv2d> {
        const OPERATION: &str = "SimConv2dConfig::init";
        let (k, [c_in, c_out]) = (self.kernel_size, self.channels);
        let conv = SimConv::new(c_in, c_out, self.relative_pose)?;
        if k.is_multiple_of(2) {
            return Err(Error::shape(OPERATION, "an odd kernel size", k.to_string()));
        }
        if self.stride == 0 {
            return Err(Error::shape(OPERATION, "a stride of at least 1", "0"));
        }
        if !(self.kappa.is_finite() && self.kappa > 0.0) {
            return Err(Error::shape(OPERATION, "a finite kappa > 0", self.kappa.to_string()));
        }
        // f, f cos d and f sin d together have twice the energy of f.
        let energy = if self.relative_pose { 2 } else { 1 };
        let (fan_in, fan_out) = (k * k * c_in * energy, k * k * c_out);
        let shape = [k, k, conv.tap_width(), c_out];
        let weight = self.initializer.init_with(shape, Some(fan_in), Some(fan_out), device);
        let bias = self.bias.then(|| Initializer::Zeros.init([c_out], device));
        Ok(SimConv2d {
            weight,
            bias,
            channels_in: c_in,
            stride: self.stride,
            kappa: self.kappa,
            relative_pose: self.relative_pose,
        })
    }
}

impl SimConv2d {
    /// Taps along one side of the kernel.
    pub fn kernel_size(&self) -> usize {
        self.weight.dims()[0]
    }

    /// The grid of the output for an input on `input`: every `stride`-th cell, cell-centred.
    pub fn output_grid(&self, input: &Grid) -> Result<Grid> {
        Ok(input.cell_centred(self.stride)?)
    }

    /// The taps of this layer for an input on `input`, shared with all layers like it.
    pub fn taps(&self, frames: &Frames, input: &Grid) -> Result<TapTable> {
        let output = self.output_grid(input)?;
        frames.taps(input, &output, self.kernel_size(), self.kappa as f32, self.relative_pose)
    }

    /// The convolution at the positions of `taps`.
    ///
    /// # Shapes
    ///
    /// - input: `[n, h_in, w_in, c_in]`, the batch and the input grid of `taps`
    /// - output: `[n, h_out, w_out, c_out]`, the output grid of `taps`
    pub fn forward(&self, input: Tensor<4>, taps: &TapTable) -> Result<Tensor<4>> {
        const OPERATION: &str = "SimConv2d::forward";
        let [kernel_size, .., c_out] = self.weight.dims();
        let grid = taps.input_grid();
        let expected = [taps.batch(), grid.height, grid.width, self.channels_in];
        check_input(OPERATION, &input, expected)?;
        if taps.kernel_size() != kernel_size {
            let expected = format!("taps of kernel size {kernel_size}");
            return Err(Error::shape(OPERATION, expected, taps.kernel_size().to_string()));
        }
        if self.relative_pose && !taps.has_input_poses() {
            let expected = "taps with input poses for a relative-pose kernel";
            return Err(Error::shape(OPERATION, expected, "taps without"));
        }
        let conv = SimConv::new(self.channels_in, c_out, self.relative_pose)?;
        let bias = self.bias.as_ref().map(|bias| bias.val().into_dispatch());
        // [n, h_in, w_in, c_in] -> [n, h_out, w_out, c_out]
        Ok(Tensor::from_dispatch(<Dispatch as SimilarityOps>::simconv(
            input.into_dispatch(),
            self.weight.val().into_dispatch(),
            bias.into(),
            ConvPlan { conv, taps: taps.clone() },
        )))
    }
}

/// Refuses a tensor that is not f32 of shape `expected`.
pub(crate) fn check_input(
    operation: &'static str,
    input: &Tensor<4>,
    expected: [usize; 4],
) -> Result<()> {
    if input.dims() != expected {
        let got = format!("{:?}", input.dims());
        return Err(Error::shape(operation, format!("input of {expected:?}"), got));
    }
    if input.dtype() != DType::F32 {
        return Err(Error::shape(operation, "values of F32", format!("{:?}", input.dtype())));
    }
    Ok(())
}

impl ModuleDisplay for SimConv2d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [kernel_size, .., c_out] = self.weight.dims();
        content
            .add("c_in", &self.channels_in)
            .add("c_out", &c_out)
            .add("kernel_size", &kernel_size)
            .add("stride", &self.stride)
            .add("kappa", &self.kappa)
            .add("bias", &self.bias.is_some())
            .add("relative_pose", &self.relative_pose)
            .optional()
    }
}
