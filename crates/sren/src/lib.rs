//! Scale and rotation equivariant networks for Burn.

mod conv;
mod equivariance;
mod error;
mod frames;
mod norm;
mod ops;
pub mod pool;

pub use conv::{SimConv2d, SimConv2dConfig};
pub use equivariance::Equivariance;
pub use error::{Error, Result};
pub use frames::Frames;
pub use norm::{MaskedBatchNorm, MaskedBatchNormConfig};
pub use sren_kernels::{PoseField, TapTable};
pub use sren_math::Grid;
