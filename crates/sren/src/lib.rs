//! Scale and rotation equivariant networks for Burn.

mod conv;
mod equivariance;
mod error;
mod frames;
mod norm;
mod ops;
pub mod pool;
pub mod pose;

pub use conv::{SimConv2d, SimConv2dConfig};
pub use equivariance::Equivariance;
pub use error::{Error, Result};
pub use frames::Frames;
pub use norm::{MaskedBatchNorm, MaskedBatchNormConfig};
pub use pose::{PoseEstimator, PoseEstimatorConfig};
pub use sren_kernels::{PoseField, TapTable};
pub use sren_math::{
    About, Grid, Image, Interpolation, MathError, Similarity, read_pose, resize, warp, wrap_angle,
};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
