//! The hot loops of sren on plain slices: pose estimation and similarity convolution.

mod buffer;
mod error;
pub mod norm;
pub mod pool;
pub mod pose;
pub mod simconv;
mod simd;
pub mod taps;

pub use error::{KernelError, Result};
pub use pose::PoseField;
pub use simconv::{SimConv, patches};
pub use taps::TapTable;
