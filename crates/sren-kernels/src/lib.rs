//! The hot loops of sren on plain slices: pose estimation and similarity convolution.

mod error;
pub mod pose;

pub use error::{KernelError, Result};
pub use pose::PoseField;
