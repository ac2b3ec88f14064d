//! Sim(2), warps and the scalable Fourier-Argand representation: the exact f64 reference.

mod error;
mod fourier_argand;
mod grid;
mod image;
mod peaks;
mod pose;
mod reference;
mod similarity;
mod template;
mod warp;

pub use error::{MathError, Result};
pub use fourier_argand::{Annulus, FourierArgand};
pub use grid::Grid;
pub use image::{Image, border_mean, luminance};
pub use peaks::{Peak, interior_peaks, prominence};
pub use pose::{Gate, Pose, PoseParams, PoseReading, PoseSpec, Ramp, Ring};
pub use reference::read_pose;
pub use similarity::{Similarity, wrap_angle};
pub use template::PoseTemplate;
pub use warp::{About, Interpolation, resize, sample, warp};
