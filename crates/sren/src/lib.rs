//! Scale and rotation equivariant networks for Burn.
//!
//! The [`PoseEstimator`] reads a local scale and orientation at every position of an image:
//! the [`Frames`]. [`SimConv2d`] places its taps in them, so that a [`FeatureMap`] moves, rotates
//! and grows with the image, at the cost of a plain convolution. A global [`pool`] makes the answer
//! invariant:
//!
//! ```
//! use burn::tensor::{Device, Distribution, Tensor};
//! use sren::{Equivariance, FeatureMap, PoseEstimatorConfig, SimConv2dConfig, pool};
//!
//! let device = Device::flex();
//! let poses = PoseEstimatorConfig::new().init()?;
//! let layer = SimConv2dConfig::new([3, 16], 7).with_stride(2).init(&device)?;
//!
//! let images = Tensor::<4>::random([2, 56, 56, 3], Distribution::Default, &device); // [n, h, w, c]
//! let frames = poses.frames(&images, Equivariance::Similarity)?;
//! let features = layer.forward(FeatureMap::from_images(images), &frames)?; // [2, 28, 28, 16]
//! let descriptor = pool::global_max(&features)?; // [2, 16], the same if the images are rotated
//! # assert_eq!(descriptor.dims(), [2, 16]);
//! # Ok::<(), sren::Error>(())
//! ```
//!
//! | module | what | paper |
//! |---|---|---|
//! | [`mod@pose`] | Fourier-Argand representation, pose estimator, frames | 4.1 |
//! | [`layers`] | similarity convolution, batch norm, pools | 4.2, 4.3 |
//! | [`models`] | residual networks, and our own parts beside them | 5 |
//! | [`equivariance`] | the equivariance error of any model | 5.1 |
//! | [`export`] | whole networks as ONNX files | - |
//!
//! Whole networks come by name: `Architecture::Resnet18.config(3, 10).init(&device)`.
//! [`Weights`] reads and writes safetensors. Everything is channels last, `[n, h, w, c]`, f32.

pub mod equivariance;
mod error;
pub mod export;
pub mod layers;
pub mod models;
mod ops;
pub mod pose;
mod weights;

pub use error::{Error, Result};
pub use layers::{
    FeatureMap, Mask, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig, TapTable,
    pool,
};
pub use pose::{
    Equivariance, Frames, PoseEstimator, PoseEstimatorConfig, PoseField, TapLayout, read_pose,
};
pub use sren_math::{About, Grid, Image, Interpolation, MathError, Similarity, warp, wrap_angle};
pub use weights::{ParameterPath, Precision, Weights};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
