//! The kernels of `sren` on plain `f32` slices, channels last, without a tensor library: pose
//! estimation, the similarity convolution with its gradients, batch norm and global pools.
//!
//! | step | items |
//! |---|---|
//! | images to local frames | [`pose::Images`], [`pose::PosePlan`], [`PoseField`] |
//! | frames to sampling locations | [`TapTable`] |
//! | convolution, forward and backward | [`SimConv`], [`patches`] |
//! | normalisation and pooling | [`norm::BatchNorm`], [`pool::GlobalPool`] |
//!
//! A similarity convolution samples the neighbourhood of each position in the position's own frame,
//! so that its output moves with the image under rotation, scaling and translation:
//! ```
//! use sren_kernels::pose::{Images, PosePlan};
//! use sren_kernels::{SimConv, TapTable};
//! use sren_math::{Grid, PoseParams, PoseSpec};
//!
//! # fn main() -> sren_kernels::Result<()> {
//! // A batch of one 32 x 32 image with one channel.
//! let image: Vec<f32> = (0..32 * 32).map(|i| ((i % 32) as f32 / 5.0).sin()).collect();
//! let pixels = Grid::pixels(32, 32);
//! let grid = pixels.cell_centred(2)?;
//!
//! // Local frames on a grid of stride 2, and the taps of a 3 x 3 kernel in them.
//! let plan = PosePlan::new(PoseSpec::new(PoseParams::default())?, grid)?;
//! let frames = plan.estimate(&Images::new(&image, 1, 32, 32, 1)?)?;
//! let taps = TapTable::new(&frames, &pixels, 3, 0.6, false)?;
//!
//! // 1 channel to 8 channels.
//! let conv = SimConv::new(1, 8, false)?;
//! let weight = vec![0.1; conv.weight_len(3)?];
//! let features = conv.forward(&taps, &image, &weight, None)?;
//! assert_eq!(features.len(), 16 * 16 * 8);
//! # Ok(())
//! # }
//! ```
//!
//! Sizes are checked in constructors and at the start of each call; [`KernelError`] names the
//! operation, what it expects and what it got. Work is shared among the threads of the current
//! `rayon` pool. AVX-512 or AVX2 is selected at run time ([`instruction_set`]); elsewhere portable
//! loops run. Results do not depend on the instruction set beyond rounding.

mod buffer;
mod error;
mod length;
pub mod norm;
pub mod pool;
pub mod pose;
pub mod simconv;
mod simd;
pub mod taps;

pub use error::{KernelError, Result};
pub use pose::PoseField;
pub use simconv::{SimConv, patches};
pub use simd::instruction_set;
pub use taps::TapTable;
