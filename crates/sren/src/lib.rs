//! Scale and rotation equivariant networks for Burn.

mod conv;
pub mod equivariance;
mod error;
mod frames;
pub mod models;
mod norm;
mod ops;
pub mod pool;
pub mod pose;
mod weights;

pub use conv::{SimConv2d, SimConv2dConfig};
pub use equivariance::Equivariance;
pub use error::{Error, Result};
pub use frames::Frames;
pub use norm::{Mask, MaskedBatchNorm, MaskedBatchNormConfig};
pub use pose::{PoseEstimator, PoseEstimatorConfig};
pub use sren_kernels::{PoseField, TapTable};
pub use sren_math::{
    About, Grid, Image, Interpolation, MathError, Similarity, read_pose, resize, warp, wrap_angle,
};
pub use weights::Weights;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
