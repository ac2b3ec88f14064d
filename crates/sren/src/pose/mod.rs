//! Local frames: the pose estimator and what layers need of its poses (the paper's Section 4.1).
//!
//! ```text
//! images -> PoseEstimator -> PoseField of each grid -> Frames -> layers
//! ```
//! The estimator rests on the scalable [Fourier-Argand](FourierArgand) representation.

mod estimator;
mod frames;
mod group;

pub use estimator::{PoseEstimator, PoseEstimatorConfig};
pub use frames::{Frames, TapLayout};
pub use group::Equivariance;
pub use sren_kernels::PoseField;
pub use sren_kernels::pose::{Images, PosePlan};
pub use sren_math::{
    Annulus, FourierArgand, Gate, Pose, PoseParams, PoseReading, PoseSpec, PoseTemplate, Ramp,
    read_pose,
};
