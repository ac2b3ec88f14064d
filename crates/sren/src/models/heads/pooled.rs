//! The paper's head: an invariant pool and a linear layer.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};

use super::Head;
use crate::error::Result;
use crate::layers::{FeatureMap, pool};
use crate::models::dropout;
use crate::models::geometry::Geometry;
use crate::pose::Frames;

/// How the features of an image become one vector.
#[derive(Config, Debug, PartialEq, Copy)]
pub enum Pool {
    /// Their mean, weighted with the gate.
    Mean,
    /// Maximum and mean, concatenated: twice the channels.
    MaxMean,
}

impl Pool {
    /// Length of the vector for features of `channels` channels.
    pub fn width(self, channels: usize) -> usize {
        match self {
            Self::Mean => channels,
            Self::MaxMean => channels.saturating_mul(2),
        }
    }

    /// `[n, h, w, c]` -> `[n, width]`
    pub fn forward(self, features: &FeatureMap, frames: &Frames) -> Result<Tensor<2>> {
        let mean = pool::gated_mean(features, frames)?;
        Ok(match self {
            Self::Mean => mean,
            Self::MaxMean => Tensor::cat(vec![pool::global_max(features)?, mean], 1),
        })
    }
}

/// Configuration of a [`PooledHead`].
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct PooledHeadConfig {
    /// The pool.
    #[config(default = "Pool::Mean")]
    pub pool: Pool,
    /// Dropout before the linear layer, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// Pool, dropout, linear layer. Made by [`PooledHeadConfig`].
#[derive(Module, Debug)]
pub struct PooledHead {
    /// Before the linear layer.
    pub dropout: Option<Dropout>,
    /// From pooled features to classes.
    pub linear: Linear,
    #[module(skip)]
    pub(crate) pool: Pool,
}

impl PooledHeadConfig {
    /// A new head for features of `channels` channels.
    pub fn init(&self, channels: usize, classes: usize, device: &Device) -> Result<PooledHead> {
        Ok(PooledHead {
            dropout: dropout(self.dropout, "PooledHeadConfig::init")?,
            linear: LinearConfig::new(self.pool.width(channels), classes).init(device),
            pool: self.pool,
        })
    }

    pub(super) fn trace(&self, classes: usize, geometry: &mut Geometry) -> Result<()> {
        let weights = self.pool.width(geometry.channels()).saturating_mul(classes);
        let parameters = weights.saturating_add(classes);
        geometry.push("head.linear".into(), [1, 1, classes], parameters, weights)
    }
}

impl Head for PooledHead {
    fn forward(&self, features: &FeatureMap, frames: &Frames) -> Result<Tensor<3>> {
        // [n, h, w, c] -> [n, width] -> [n, 1, width] -> [n, 1, classes]
        let pooled = self.pool.forward(features, frames)?.unsqueeze_dim::<3>(1);
        let pooled = match &self.dropout {
            Some(dropout) => dropout.forward(pooled),
            None => pooled,
        };
        Ok(self.linear.forward(pooled))
    }
}
