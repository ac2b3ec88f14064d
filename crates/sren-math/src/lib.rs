//! The mathematics of `sren` in f64: similarities of the plane, warps, the scalable Fourier-Argand
//! representation and the pose estimator. This is the exact, slow reference that the kernels of
//! `sren-kernels` are tested against.
//!
//! | concept | items |
//! |---|---|
//! | the group Sim(2) | [`Similarity`], [`wrap_angle`] |
//! | its action on images | [`Image`], [`warp`], [`sample`] |
//! | positions where layers are evaluated | [`Grid`] |
//! | functions on an annulus, steered by a similarity | [`Annulus`], [`FourierArgand`] |
//! | local frames | [`PoseTemplate`], [`PoseParams`], [`PoseSpec`], [`read_pose`] |
//!
//! Coordinates are image coordinates: x to the right, y down, pixel centres at integers, angles in
//! radians from the x axis towards the y axis. Images are channels last. Arguments are checked once,
//! at construction; [`MathError`] names the operation, what it expects and what it got.
//!
//! A local frame rotates and scales with the image:
//! ```
//! use sren_math::{
//!     About, Image, Interpolation, PoseParams, PoseSpec, Similarity, read_pose, warp, wrap_angle,
//! };
//!
//! # fn main() -> sren_math::Result<()> {
//! // A soft blob, and the same blob enlarged by 1.5 and rotated by 1 radian about the centre.
//! let image = Image::from_fn(80, 80, |x, y| {
//!     (-((x - 44.0).powi(2) + (y - 39.5).powi(2)) / 18.0).exp()
//! })?;
//! let transform = Similarity::new(1.5, 1.0, [0.0, 0.0])?;
//! let warped = warp(&image, &transform, About::Centre, Interpolation::Bilinear);
//!
//! // The pose at a point, and at the point that it moves to.
//! let spec = PoseSpec::new(PoseParams::default())?;
//! let point = [39.5, 36.0];
//! let (before, confidence) = read_pose(&spec, &image, point);
//! let (after, _) = read_pose(&spec, &warped, transform.about(image.centre()).apply(point));
//! assert!(confidence > 0.5);
//! assert!((after[0].pose.scale / before[0].pose.scale - 1.5).abs() < 0.05);
//! assert!(wrap_angle(after[0].pose.angle - before[0].pose.angle - 1.0).abs() < 0.05);
//! # Ok(())
//! # }
//! ```

mod error;
mod fourier_argand;
mod grid;
mod image;
mod peaks;
mod pose;
mod reference;
mod shape;
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
pub use shape::element_count;
pub use similarity::{Similarity, wrap_angle};
pub use template::PoseTemplate;
pub use warp::{About, Interpolation, sample, warp};
