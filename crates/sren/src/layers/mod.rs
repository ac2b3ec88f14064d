//! Equivariant layers: the similarity convolution (the paper's Section 4.2), batch norm over active
//! positions and invariant pools (Section 4.3).
//!
//! Layers map [`FeatureMap`]s to [`FeatureMap`]s in the [`Frames`](crate::Frames) of a batch. Each
//! also has a form on plain tensors, for those who handle tap tables and masks themselves.

mod batch_norm;
mod feature_map;
mod mask;
pub mod pool;
mod simconv;

pub use batch_norm::{MaskedBatchNorm, MaskedBatchNormConfig};
pub use feature_map::FeatureMap;
pub use mask::Mask;
pub use simconv::{SimConv2d, SimConv2dConfig};
pub use sren_kernels::TapTable;
