//! A layer of a plain CNN: convolution, batch norm, ReLU.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Device;

use crate::error::Result;
use crate::layers::{MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig};

/// Configuration of a [`ConvLayer`].
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct ConvLayerConfig {
    /// Channels of its output.
    pub channels: usize,
    /// Taps along one side of its kernel, odd.
    pub kernel: usize,
    /// Its stride.
    pub stride: usize,
}

/// Plain convolution, batch norm, ReLU: a layer on patches, or on images in log-polar coordinates.
/// Made by [`ConvLayerConfig`].
#[derive(Module, Debug)]
pub struct ConvLayer {
    /// The convolution.
    pub conv: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm: MaskedBatchNorm,
}

impl ConvLayerConfig {
    /// A new layer for features of `channels` channels.
    pub(super) fn init(&self, channels: usize, device: &Device) -> Result<ConvLayer> {
        let conv = SimConv2dConfig::new([channels, self.channels], self.kernel)
            .with_stride(self.stride)
            .with_bias(false);
        let norm = MaskedBatchNormConfig::new(self.channels).with_relu(true);
        Ok(ConvLayer { conv: conv.init(device)?, norm: norm.init(device)? })
    }
}
