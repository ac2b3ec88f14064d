//! Heads: from a feature map to a score for each class and orientation.

mod harmonics;
mod orientation;
mod pooled;

pub(crate) use harmonics::{HarmonicLayers, HarmonicSizes, Harmonics};
pub(crate) use orientation::{MOMENTS, orientation_prior};
pub use orientation::{OrientationHead, OrientationHeadConfig, marginalise, orientation_posterior};
pub use pooled::{Pool, PooledHead, PooledHeadConfig};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use crate::error::Result;
use crate::layers::FeatureMap;
use crate::pose::{Equivariance, Frames};

/// Maps a feature map to log-scores.
pub trait Head {
    /// Features `[n, h, w, c]` -> scores `[n, orientations, classes]`, upright first. A head without
    /// orientations, or in frames without rotations, gives one row.
    fn forward(&self, features: &FeatureMap, frames: &Frames) -> Result<Tensor<3>>;

    /// The prior probability that an image is upright; the rest is spread over all orientations.
    fn upright_prior(&self) -> f64 {
        0.0
    }
}

/// Configuration of an [`AnyHead`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeadConfig {
    /// The paper's: an invariant pool and a linear layer.
    Pooled(PooledHeadConfig),
    /// Scores every class for every orientation of the image.
    Orientation(OrientationHeadConfig),
}

/// A head by configuration.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // a network has one
pub enum AnyHead {
    /// See [`PooledHead`].
    Pooled(PooledHead),
    /// See [`OrientationHead`].
    Orientation(OrientationHead),
}

impl HeadConfig {
    /// A new head for features of `channels` channels.
    pub fn init(&self, channels: usize, classes: usize, device: &Device) -> Result<AnyHead> {
        Ok(match self {
            Self::Pooled(config) => AnyHead::Pooled(config.init(channels, classes, device)?),
            Self::Orientation(config) => {
                AnyHead::Orientation(config.init(channels, classes, device)?)
            }
        })
    }

    pub(super) fn trace(
        &self,
        classes: usize,
        group: Equivariance,
        geometry: &mut Geometry,
    ) -> Result<()> {
        match self {
            Self::Pooled(config) => config.trace(classes, geometry),
            Self::Orientation(config) => config.trace(classes, group, geometry),
        }
    }
}

impl AnyHead {
    fn inner(&self) -> &dyn Head {
        match self {
            Self::Pooled(head) => head,
            Self::Orientation(head) => head,
        }
    }
}

impl Head for AnyHead {
    fn forward(&self, features: &FeatureMap, frames: &Frames) -> Result<Tensor<3>> {
        self.inner().forward(features, frames)
    }

    fn upright_prior(&self) -> f64 {
        self.inner().upright_prior()
    }
}
