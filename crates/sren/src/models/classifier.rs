//! A classifier: one backbone, one head, and the estimator of the frames they share.

use burn::module::Module;
use burn::tensor::Tensor;
use sren_math::Grid;

use super::backbone::{AnyBackbone, Backbone};
use super::heads::{AnyHead, Head, marginalise};
use super::log_polar::LogPolar;
use crate::error::{Error, Result};
use crate::layers::FeatureMap;
use crate::pose::{Equivariance, Frames, PoseEstimator, PoseField};

/// Backbone and head. Poses are estimated once, from the images, and shared by all layers. Made by
/// [`NetworkConfig`](super::NetworkConfig).
#[derive(Module, Debug)]
pub struct Classifier {
    /// From images to features.
    pub backbone: AnyBackbone,
    /// From features to scores.
    pub head: AnyHead,
    /// Scores of the whole object, added to those of the head.
    pub log_polar: Option<LogPolar>,
    #[module(skip)]
    pub(crate) poses: PoseEstimator,
    #[module(skip)]
    pub(crate) equivariance: Equivariance,
    pub(super) active_only: bool,
    pub(crate) image_channels: usize,
}

impl Classifier {
    /// The equivariance group.
    pub fn equivariance(&self) -> Equivariance {
        self.equivariance
    }

    /// The estimator of the frames.
    pub fn pose_estimator(&self) -> &PoseEstimator {
        &self.poses
    }

    /// The classifier with a backbone that does not learn.
    pub fn with_frozen_backbone(self) -> Self {
        let log_polar = self.log_polar.map(LogPolar::with_frozen_backbone);
        Self { backbone: self.backbone.no_grad(), log_polar, ..self }
    }

    /// The local frames of images `[n, h, w, c]`.
    pub fn frames(&self, images: &Tensor<4>) -> Result<Frames> {
        self.frames_of(self.pose_fields(images)?)
    }

    /// The pose fields of images `[n, h, w, c]` on every grid of the backbone.
    pub fn pose_fields(&self, images: &Tensor<4>) -> Result<Vec<PoseField>> {
        let [n, h, w, c] = images.dims();
        if c != self.image_channels {
            let expected = format!("images of {} channels", self.image_channels);
            return Err(Error::shape("Classifier", expected, c.to_string()));
        }
        let grids = self.backbone.grids(&Grid::pixels(h, w))?;
        if self.is_plain() {
            let identity = |grid: &Grid| Ok(PoseField::identity(*grid, n)?);
            return grids.iter().map(identity).collect();
        }
        self.poses.fields(images, &grids)
    }

    /// The frames that the classifier computes in, from the pose field of each grid.
    pub fn frames_of(&self, fields: Vec<PoseField>) -> Result<Frames> {
        let frames = Frames::new(fields, self.equivariance)?;
        Ok(frames.with_active_only(self.computes_active_only()))
    }

    /// Whether only positions that have a pose are computed.
    pub fn computes_active_only(&self) -> bool {
        self.active_only && !self.is_plain()
    }

    /// Whether it is a plain CNN, which needs no poses.
    pub(crate) fn is_plain(&self) -> bool {
        self.equivariance == Equivariance::None && !self.backbone.needs_poses()
    }

    /// The equivariant feature maps of all layers by name, first to last.
    pub fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(String, FeatureMap)>> {
        self.backbone.feature_maps(images, frames)
    }

    /// Images `[n, h, w, c]` -> scores `[n, orientations, classes]`; see [`Head::forward`].
    pub fn scores_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<3>> {
        let branch = match &self.log_polar {
            Some(branch) => Some(branch.forward(&images, frames.equivariance())?),
            None => None,
        };
        let scores = self.head.forward(&self.backbone.forward(images, frames)?, frames)?;
        Ok(match branch {
            Some(branch) => scores + branch,
            None => scores,
        })
    }

    /// Images `[n, h, w, c]` -> logits `[n, classes]`.
    pub fn forward(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        let frames = self.frames(&images)?;
        self.forward_in(images, &frames)
    }

    /// [`forward`](Self::forward) in given frames.
    pub fn forward_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<2>> {
        let scores = self.scores_in(images, frames)?;
        Ok(marginalise(scores, self.head.upright_prior()))
    }
}
