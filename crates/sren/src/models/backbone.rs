//! Backbones: from images to a feature map that moves, rotates and grows with them.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use sren_math::Grid;

use super::geometry::Geometry;
use super::patch_encoder::{PatchEncoder, PatchEncoderConfig};
use super::residual::{SimResNet, SimResNetConfig};
use crate::error::Result;
use crate::layers::FeatureMap;
use crate::pose::Frames;

/// Maps images `[n, h, w, c]` in their frames to a feature map.
pub trait Backbone {
    /// The grids that it needs frames on, finest first, for images on `image`.
    fn grids(&self, image: &Grid) -> Result<Vec<Grid>>;

    /// The last feature map: what a head reads.
    fn forward(&self, images: Tensor<4>, frames: &Frames) -> Result<FeatureMap>;

    /// The feature maps of all layers by name, first to last.
    fn feature_maps(&self, images: Tensor<4>, frames: &Frames)
    -> Result<Vec<(String, FeatureMap)>>;

    /// Whether it needs poses even with [`Equivariance::None`](crate::Equivariance::None), to know
    /// where to compute.
    fn needs_poses(&self) -> bool {
        false
    }
}

/// Configuration of an [`AnyBackbone`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BackboneConfig {
    /// The paper's residual network of similarity convolutions.
    Residual(SimResNetConfig),
    /// A plain network on the patch around each position, sampled in its frame.
    Patches(PatchEncoderConfig),
}

/// A backbone by configuration.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // a network has one
pub enum AnyBackbone {
    /// See [`SimResNet`].
    Residual(SimResNet),
    /// See [`PatchEncoder`].
    Patches(PatchEncoder),
}

impl BackboneConfig {
    /// A new backbone for images of `image_channels` channels.
    pub fn init(&self, image_channels: usize, device: &Device) -> Result<AnyBackbone> {
        Ok(match self {
            Self::Residual(config) => AnyBackbone::Residual(config.init(image_channels, device)?),
            Self::Patches(config) => AnyBackbone::Patches(config.init(image_channels, device)?),
        })
    }

    /// Channels of its output.
    pub fn channels(&self) -> usize {
        match self {
            Self::Residual(config) => config.channels(),
            Self::Patches(config) => config.channels,
        }
    }

    /// Taps along one side of what the first layer reads of the image, stride and
    /// reference scale.
    pub fn sampling(&self) -> (usize, usize, f64) {
        match self {
            Self::Residual(config) => {
                (config.stem_kernel, config.stem_stride, config.stem_reference_scale)
            }
            Self::Patches(config) => (config.side, config.stride, config.reference_scale),
        }
    }

    /// The same on grids that are `factor` times as fine, taps as far apart in pixels; `None` if the
    /// stride is no multiple of `factor`.
    pub fn finer(&self, factor: usize) -> Option<Self> {
        let (_, stride, _) = self.sampling();
        if factor == 0 || !stride.is_multiple_of(factor) {
            return None;
        }
        Some(match self.clone() {
            Self::Residual(config) => {
                let reference_scale = config.reference_scale / factor as f64;
                let stride = stride / factor;
                Self::Residual(SimResNetConfig { reference_scale, stem_stride: stride, ..config })
            }
            Self::Patches(config) => {
                Self::Patches(PatchEncoderConfig { stride: stride / factor, ..config })
            }
        })
    }

    /// Whether the features of a position depend on its own surroundings only, and not on features
    /// of other positions.
    pub fn has_independent_positions(&self) -> bool {
        match self {
            Self::Residual(config) => config.stages.is_empty(),
            Self::Patches(_) => true,
        }
    }

    pub(super) fn trace(&self, geometry: &mut Geometry) -> Result<()> {
        match self {
            Self::Residual(config) => config.trace(geometry),
            Self::Patches(config) => config.trace(geometry),
        }
    }
}

impl AnyBackbone {
    fn inner(&self) -> &dyn Backbone {
        match self {
            Self::Residual(backbone) => backbone,
            Self::Patches(backbone) => backbone,
        }
    }
}

impl Backbone for AnyBackbone {
    fn grids(&self, image: &Grid) -> Result<Vec<Grid>> {
        self.inner().grids(image)
    }

    fn forward(&self, images: Tensor<4>, frames: &Frames) -> Result<FeatureMap> {
        self.inner().forward(images, frames)
    }

    fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(String, FeatureMap)>> {
        self.inner().feature_maps(images, frames)
    }

    fn needs_poses(&self) -> bool {
        self.inner().needs_poses()
    }
}
