//! Pose estimation: from a batch of images to a field of local frames.

mod canvas;
mod field;
mod plan;
mod rings;

pub use canvas::Images;
pub use field::PoseField;
pub use plan::PosePlan;
pub use rings::{Offset, ring_kernel};
