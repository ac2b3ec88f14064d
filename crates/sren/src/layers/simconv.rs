//! The similarity convolution as a layer.

use burn::backend::Dispatch;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Initializer, Module, ModuleDisplay, Param};
use burn::tensor::{DType, Device, Tensor};
use sren_kernels::{SimConv, TapTable};
use sren_math::Grid;

use super::feature_map::{FeatureMap, check_values};
use crate::error::{Error, Result};
use crate::ops::{ConvPlan, SimilarityOps};
use crate::pose::{Frames, TapLayout};

/// He initialisation: `sqrt(2 / fan_in)`.
const HE: Initializer =
    Initializer::KaimingNormal { gain: std::f64::consts::SQRT_2, fan_out_only: false };

/// Most taps along one side of a kernel.
const MAX_KERNEL: usize = 255;

/// Configuration of a [similarity convolution](SimConv2d).
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct SimConv2dConfig {
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Taps along one side of the kernel, odd.
    pub kernel_size: usize,
    /// Stride: the output grid has every `stride`-th cell of the input grid.
    #[config(default = 1)]
    pub stride: usize,
    /// Distance of neighbouring taps, in steps of the input grid, for a pose of the reference scale.
    #[config(default = 1)]
    pub dilation: usize,
    /// The reference scale Lambda_0, in pixels: taps of a pose of scale Lambda lie
    /// `dilation Lambda / Lambda_0` grid steps apart.
    #[config(default = 1.0)]
    pub reference_scale: f64,
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

/// `out(x) = sum_t f(x + d Lambda(x)/Lambda_0 R(Gamma(x)) t) phi(t)`: a convolution in the frame of each
/// position, channels last. Made by [`SimConv2dConfig`].
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sren::{Equivariance, FeatureMap, PoseEstimatorConfig, SimConv2dConfig};
///
/// let device = Device::flex();
/// let images = Tensor::<4>::random([2, 32, 32, 1], Distribution::Default, &device);
/// let frames = PoseEstimatorConfig::new().init()?.frames(&images, Equivariance::Similarity)?;
/// let layer = SimConv2dConfig::new([1, 8], 5).with_stride(2).init(&device)?;
/// let features = layer.forward(FeatureMap::from_images(images), &frames)?;
/// assert_eq!(features.values.dims(), [2, 16, 16, 8]);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SimConv2d {
    /// `[k, k, c_in, c_out]`, or `[k, k, 3 * c_in, c_out]` with a relative-pose kernel.
    pub weight: Param<Tensor<4>>,
    /// `[c_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    channels_in: usize,
    stride: usize,
    dilation: usize,
    reference_scale: f64,
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
        if k > MAX_KERNEL {
            let expected = format!("a kernel size of at most {MAX_KERNEL}");
            return Err(Error::shape(OPERATION, expected, k.to_string()));
        }
        conv.weight_len(k)?;
        if self.stride == 0 {
            return Err(Error::shape(OPERATION, "a stride of at least 1", "0"));
        }
        if self.dilation == 0 {
            return Err(Error::shape(OPERATION, "a dilation of at least 1", "0"));
        }
        if !(self.reference_scale.is_finite() && self.reference_scale > 0.0) {
            let got = self.reference_scale.to_string();
            return Err(Error::shape(OPERATION, "a finite reference scale > 0", got));
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
            dilation: self.dilation,
            reference_scale: self.reference_scale,
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
        frames.taps(input, &self.output_grid(input)?, self.layout())
    }

    /// [`taps`](Self::taps) for an input that is gated by `frames`, as the output of a masked batch
    /// norm is: samples without an active position are skipped.
    pub fn taps_of_gated(&self, frames: &Frames, input: &Grid) -> Result<TapTable> {
        let layout = TapLayout { gated_input: true, ..self.layout() };
        frames.taps(input, &self.output_grid(input)?, layout)
    }

    pub(crate) fn layout(&self) -> TapLayout {
        TapLayout {
            dilation: self.dilation,
            reference_scale: self.reference_scale,
            relative_pose: self.relative_pose,
            ..TapLayout::new(self.kernel_size())
        }
    }

    /// The convolution of `input` in `frames`, gated: positions without a pose are zero.
    ///
    /// # Shapes
    ///
    /// - input: `[n, h, w, c_in]`
    /// - output: `[n, h / stride, w / stride, c_out]`, rounded up
    pub fn forward(&self, input: FeatureMap, frames: &Frames) -> Result<FeatureMap> {
        let taps = self.taps(frames, &input.grid)?;
        let grid = *taps.output_grid();
        let values = self.convolve(input.values, &taps)?;
        let gate = frames.gate(&grid, &values.device())?;
        Ok(FeatureMap { values: values * gate, grid })
    }

    /// The convolution at the positions of `taps`, without a gate: what comes before a batch norm.
    ///
    /// # Shapes
    ///
    /// - input: `[n, h_in, w_in, c_in]`, the batch and the input grid of `taps`
    /// - output: `[n, h_out, w_out, c_out]`, the output grid of `taps`
    pub fn convolve(&self, input: Tensor<4>, taps: &TapTable) -> Result<Tensor<4>> {
        const OPERATION: &str = "SimConv2d";
        let conv = self.checked_kernel(OPERATION, &input.device())?;
        let grid = taps.input_grid();
        let expected = [taps.batch(), grid.height, grid.width, self.channels_in];
        check_values(OPERATION, &input, expected)?;
        if taps.kernel_size() != self.kernel_size() {
            let expected = format!("taps of kernel size {}", self.kernel_size());
            return Err(Error::shape(OPERATION, expected, taps.kernel_size().to_string()));
        }
        if self.relative_pose && !taps.has_input_poses() {
            let expected = "taps with input poses for a relative-pose kernel";
            return Err(Error::shape(OPERATION, expected, "taps without"));
        }
        let bias = self.bias.as_ref().map(|bias| bias.val().into_dispatch());
        // [n, h_in, w_in, c_in] -> [n, h_out, w_out, c_out]
        Ok(Tensor::from_dispatch(<Dispatch as SimilarityOps>::simconv(
            input.into_dispatch(),
            self.weight.val().into_dispatch(),
            bias.into(),
            ConvPlan { conv, taps: taps.clone() },
        )))
    }

    /// The kernel's shape. Weight and bias are public: returns an error if they were replaced by
    /// tensors of another shape, type or device.
    fn checked_kernel(&self, operation: &'static str, device: &Device) -> Result<SimConv> {
        let [k, _, _, c_out] = self.weight.dims();
        let conv = SimConv::new(self.channels_in, c_out, self.relative_pose)?;
        check_parameter(
            operation,
            "weight",
            &self.weight,
            [k, k, conv.tap_width(), c_out],
            device,
        )?;
        if let Some(bias) = &self.bias {
            check_parameter(operation, "bias", bias, [c_out], device)?;
        }
        Ok(conv)
    }
}

/// Returns an error if a parameter is not f32 of shape `expected` on `device`.
pub(super) fn check_parameter<const D: usize>(
    operation: &'static str,
    name: &str,
    parameter: &Param<Tensor<D>>,
    expected: [usize; D],
    device: &Device,
) -> Result<()> {
    let tensor = parameter.val();
    if tensor.dims() != expected {
        let got = format!("{:?}", tensor.dims());
        return Err(Error::shape(operation, format!("{name} of {expected:?}"), got));
    }
    if tensor.dtype() != DType::F32 {
        let got = format!("{:?}", tensor.dtype());
        return Err(Error::shape(operation, format!("{name} of F32"), got));
    }
    if tensor.device() != *device {
        let (expected, got) = (format!("{name} on {device:?}"), format!("{:?}", tensor.device()));
        return Err(Error::shape(operation, expected, got));
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
            .add("dilation", &self.dilation)
            .add("reference_scale", &self.reference_scale)
            .add("bias", &self.bias.is_some())
            .add("relative_pose", &self.relative_pose)
            .optional()
    }
}
