//! The residual block.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Dropout;
use burn::tensor::Device;
use sren_kernels::TapTable;

use crate::error::Result;
use crate::layers::{
    FeatureMap, Mask, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig,
};
use crate::models::dropout;
use crate::models::geometry::{ConvShape, Geometry};
use crate::pose::Frames;

/// Taps along one side of the kernels.
const KERNEL: usize = 3;

/// Configuration of a [residual block](SimBlock).
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct SimBlockConfig {
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Stride of the first convolution.
    #[config(default = 1)]
    pub stride: usize,
    /// Distance of neighbouring taps, in steps of the input grid, for a pose of the reference scale.
    #[config(default = 1)]
    pub dilation: usize,
    /// The reference scale, in pixels.
    #[config(default = 1.0)]
    pub reference_scale: f64,
    /// Whether kernels also depend on the angle between the frames of the two positions.
    #[config(default = false)]
    pub relative_pose: bool,
    /// Dropout between the two convolutions, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// `g relu(x + norm(conv(g relu(norm(conv(x))))))` with 3x3 similarity convolutions and g the gate.
/// Made by [`SimBlockConfig`].
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sren::models::SimBlockConfig;
/// use sren::{Equivariance, FeatureMap, PoseEstimatorConfig};
///
/// let device = Device::flex();
/// let images = Tensor::<4>::random([1, 32, 32, 4], Distribution::Default, &device);
/// let frames = PoseEstimatorConfig::new().init()?.frames(&images, Equivariance::Similarity)?;
/// let block = SimBlockConfig::new([4, 8]).with_stride(2).init(&device)?;
/// let features = block.forward(FeatureMap::from_images(images), &frames)?;
/// assert_eq!(features.values.dims(), [1, 16, 16, 8]);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct SimBlock {
    /// First convolution: it strides and changes the channels.
    pub conv1: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm1: MaskedBatchNorm,
    /// Between the convolutions.
    pub dropout: Option<Dropout>,
    /// Second convolution.
    pub conv2: SimConv2d,
    /// Its batch norm, with residual and ReLU.
    pub norm2: MaskedBatchNorm,
    /// Where stride or channels change.
    pub shortcut: Option<Shortcut>,
}

/// The residual path where stride or channels change.
#[derive(Module, Debug)]
pub struct Shortcut {
    /// 1x1 convolution.
    pub conv: SimConv2d,
    /// Its batch norm.
    pub norm: MaskedBatchNorm,
}

impl SimBlockConfig {
    /// Whether stride or channels change.
    fn has_shortcut(&self) -> bool {
        self.stride != 1 || self.channels[0] != self.channels[1]
    }

    /// Adds its layers to `geometry`.
    pub(super) fn trace(&self, name: &str, geometry: &mut Geometry) -> Result<()> {
        let [_, channels] = self.channels;
        let shape = |kernel: usize, stride: usize, relative_pose: bool| ConvShape {
            kernel,
            channels,
            stride,
            relative_pose,
        };
        let mut shortcut = geometry.branch();
        geometry.conv(format!("{name}.conv1"), shape(KERNEL, self.stride, self.relative_pose))?;
        geometry.conv(format!("{name}.conv2"), shape(KERNEL, 1, self.relative_pose))?;
        if self.has_shortcut() {
            shortcut.conv(format!("{name}.shortcut"), shape(1, self.stride, false))?;
            geometry.append("", shortcut)?;
        }
        Ok(())
    }

    /// A new block on `device`.
    pub fn init(&self, device: &Device) -> Result<SimBlock> {
        let [c_in, c_out] = self.channels;
        let conv = |c: usize, stride: usize| {
            SimConv2dConfig::new([c, c_out], KERNEL)
                .with_stride(stride)
                .with_dilation(self.dilation)
                .with_reference_scale(self.reference_scale)
                .with_bias(false)
                .with_relative_pose(self.relative_pose)
                .init(device)
        };
        let norm = |relu| MaskedBatchNormConfig::new(c_out).with_relu(relu).init(device);
        let shortcut = if !self.has_shortcut() {
            None
        } else {
            let one = SimConv2dConfig::new(self.channels, 1).with_stride(self.stride);
            Some(Shortcut { conv: one.with_bias(false).init(device)?, norm: norm(false)? })
        };
        Ok(SimBlock {
            conv1: conv(c_in, self.stride)?,
            norm1: norm(true)?,
            dropout: dropout(self.dropout, "SimBlockConfig::init")?,
            conv2: conv(c_out, 1)?,
            norm2: norm(true)?,
            shortcut,
        })
    }
}

impl SimBlock {
    /// `[n, h, w, c_in]` -> `[n, h / stride, w / stride, c_out]`, gated.
    pub fn forward(&self, input: FeatureMap, frames: &Frames) -> Result<FeatureMap> {
        let taps = self.conv1.taps(frames, &input.grid)?;
        self.forward_with(input, frames, &taps)
    }

    /// [`forward`](Self::forward) of features that are gated by `frames`.
    pub(super) fn forward_gated(&self, input: FeatureMap, frames: &Frames) -> Result<FeatureMap> {
        let taps = self.conv1.taps_of_gated(frames, &input.grid)?;
        self.forward_with(input, frames, &taps)
    }

    fn forward_with(
        &self,
        input: FeatureMap,
        frames: &Frames,
        taps: &TapTable,
    ) -> Result<FeatureMap> {
        let FeatureMap { values: x, grid } = input;
        let out = *taps.output_grid();
        let mask = frames.mask(&out)?;
        // [n, h, w, c_in] -> [n, h / stride, w / stride, c_out]
        let y = self.conv1.convolve(x.clone(), taps)?;
        let y = self.norm1.forward(y, &mask)?;
        let y = match &self.dropout {
            Some(dropout) => dropout.forward(y),
            None => y,
        };
        let y = self.conv2.convolve(y, &self.conv2.taps_of_gated(frames, &out)?)?;
        let x = match &self.shortcut {
            None => x,
            Some(Shortcut { conv, norm }) => {
                let ungated = Mask { gate: None, ..mask.clone() };
                norm.forward(conv.convolve(x, &conv.taps(frames, &grid)?)?, &ungated)?
            }
        };
        Ok(FeatureMap { values: self.norm2.forward_residual(y, x, &mask)?, grid: out })
    }
}
