//! Whole networks, each for all four [equivariance groups](crate::Equivariance) with the same code.
//!
//! ```text
//! images, frames -> Backbone -> FeatureMap -> Head -> scores per orientation -> logits
//! ```
//! A [`Classifier`] has one backbone and one head, and may have a [`LogPolar`] branch, whose scores
//! are added to those of the head; [`Canonicalised`] wraps it with a plain branch that
//! sees the image rotated upright. [`NetworkConfig`] describes either and builds a [`Network`].
//!
//! | from the paper | ours |
//! |---|---|
//! | [`SimBlock`], [`SimResNet`] | [`PatchEncoder`], relative-pose kernels |
//! | [`PooledHead`] | [`OrientationHead`], [`LogPolar`], [`Canonicalised`] |

mod architecture;
mod backbone;
mod border;
mod canonical;
mod classifier;
mod conv_layer;
mod geometry;
mod heads;
mod legacy;
mod log_polar;
mod loss;
mod network;
mod patch_encoder;
mod residual;

pub use architecture::Architecture;
pub use backbone::{AnyBackbone, Backbone, BackboneConfig};
pub(crate) use canonical::UNLIKELY;
pub use canonical::{CanonicalConfig, Canonicalised};
pub use classifier::Classifier;
pub use conv_layer::{ConvLayer, ConvLayerConfig};
pub use geometry::{Geometry, LayerGeometry, parameter_count};
pub use heads::{
    AnyHead, Head, HeadConfig, OrientationHead, OrientationHeadConfig, Pool, PooledHead,
    PooledHeadConfig, marginalise, orientation_posterior,
};
pub(crate) use heads::{Harmonics, MOMENTS, orientation_prior};
pub use legacy::current_name;
pub(crate) use log_polar::CircularGrids;
pub use log_polar::{LogPolar, LogPolarConfig};
pub use loss::{TrainingBatch, TrainingLoss};
pub use network::{Network, NetworkConfig};
pub use patch_encoder::{PatchEncoder, PatchEncoderConfig};
pub use residual::{Shortcut, SimBlock, SimBlockConfig, SimResNet, SimResNetConfig, StageConfig};

use burn::nn::{Dropout, DropoutConfig};

use crate::error::{Error, Result};

/// Dropout of a fraction `part`, if that is above 0.
fn dropout(part: f64, operation: &'static str) -> Result<Option<Dropout>> {
    if !(0.0..1.0).contains(&part) {
        return Err(Error::shape(operation, "a dropout in 0..1", part.to_string()));
    }
    Ok((part > 0.0).then(|| DropoutConfig::new(part).init()))
}
