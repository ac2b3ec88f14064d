//! The residual backbone: a stem and stages of residual blocks.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use sren_math::Grid;

use super::block::{SimBlock, SimBlockConfig};
use crate::error::{Error, Result};
use crate::layers::{
    FeatureMap, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig,
};
use crate::models::backbone::Backbone;
use crate::models::geometry::{ConvShape, Geometry, check_length, check_pose, within};
use crate::pose::{Equivariance, Frames, PoseEstimator, PoseEstimatorConfig};

/// Most blocks.
const MAX_BLOCKS: usize = 1000;
/// Most grid steps between two taps.
const MAX_DILATION: usize = 256;

/// Blocks on one grid.
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct StageConfig {
    /// Channels of every block.
    pub channels: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Stride of the first.
    pub stride: usize,
    /// Distance of neighbouring taps, in grid steps, for a pose of the reference scale.
    #[config(default = 1)]
    pub dilation: usize,
}

/// Configuration of a [`SimResNet`]. [`Architecture`](crate::models::Architecture) has the paper's.
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct SimResNetConfig {
    /// Channels of the stem.
    pub stem_channels: usize,
    /// Taps along one side of the stem's kernel, odd.
    pub stem_kernel: usize,
    /// Stride of the stem.
    pub stem_stride: usize,
    /// The scale, in pixels, of a pose whose taps lie one pixel apart in the stem.
    #[config(default = 1.0)]
    pub stem_reference_scale: f64,
    /// The scale, in pixels, of a pose whose taps lie `dilation` grid steps apart in the blocks.
    #[config(default = 1.0)]
    pub reference_scale: f64,
    /// Whether kernels of blocks also depend on the angle between the frames of two positions.
    #[config(default = false)]
    pub relative_pose: bool,
    /// Whether every block estimates poses again, from the mean over the channels of its input: the
    /// paper's Algorithm 1. Errors then grow with depth; by default poses come from the image.
    #[config(default = "None")]
    pub poses_per_block: Option<PoseEstimatorConfig>,
    /// Dropout in every block, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// The stages, finest first.
    pub stages: Vec<StageConfig>,
}

/// Stem and residual blocks of similarity convolutions. Made by [`SimResNetConfig`].
#[derive(Module, Debug)]
pub struct SimResNet {
    /// The convolution that reads the image.
    pub stem: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm: MaskedBatchNorm,
    /// The residual blocks.
    pub blocks: Vec<SimBlock>,
    #[module(skip)]
    pub(crate) block_poses: Option<PoseEstimator>,
}

impl SimResNetConfig {
    /// A new network for images of `image_channels` channels.
    pub fn init(&self, image_channels: usize, device: &Device) -> Result<SimResNet> {
        if self.stages.iter().any(|stage| stage.blocks == 0) {
            let got = format!("{:?}", self.stages.iter().map(|s| s.blocks).collect::<Vec<_>>());
            return Err(Error::shape("SimResNetConfig::init", "stages of at least 1 block", got));
        }
        let stem = SimConv2dConfig::new([image_channels, self.stem_channels], self.stem_kernel)
            .with_stride(self.stem_stride)
            .with_reference_scale(self.stem_reference_scale)
            .with_bias(false);
        let norm = MaskedBatchNormConfig::new(self.stem_channels).with_relu(true);
        let blocks = self.blocks().map(|block| block.init(device)).collect::<Result<_>>()?;
        let block_poses = self.poses_per_block.as_ref().map(PoseEstimatorConfig::init);
        Ok(SimResNet {
            stem: stem.init(device)?,
            norm: norm.init(device)?,
            blocks,
            block_poses: block_poses.transpose()?,
        })
    }

    /// The blocks of all stages.
    fn blocks(&self) -> impl Iterator<Item = SimBlockConfig> {
        let mut c_in = self.stem_channels;
        self.stages.iter().flat_map(|stage| (0..stage.blocks).map(move |i| (stage, i))).map(
            move |(stage, index)| {
                let channels = [std::mem::replace(&mut c_in, stage.channels), stage.channels];
                SimBlockConfig::new(channels)
                    .with_stride(if index == 0 { stage.stride } else { 1 })
                    .with_dilation(stage.dilation)
                    .with_reference_scale(self.reference_scale)
                    .with_relative_pose(self.relative_pose)
                    .with_dropout(self.dropout)
            },
        )
    }

    /// Channels of the output.
    pub fn channels(&self) -> usize {
        self.stages.last().map_or(self.stem_channels, |stage| stage.channels)
    }

    /// Adds its layers to `geometry`.
    pub(in crate::models) fn trace(&self, geometry: &mut Geometry) -> Result<()> {
        let blocks = self.stages.iter().fold(0usize, |n, stage| n.saturating_add(stage.blocks));
        within("blocks", blocks, 0, MAX_BLOCKS)?;
        check_length("stem_reference_scale", self.stem_reference_scale)?;
        check_length("reference_scale", self.reference_scale)?;
        self.poses_per_block.as_ref().map_or(Ok(()), check_pose)?;
        for stage in &self.stages {
            within("dilation", stage.dilation, 1, MAX_DILATION)?;
        }
        let stem = ConvShape {
            kernel: self.stem_kernel,
            channels: self.stem_channels,
            stride: self.stem_stride,
            relative_pose: false,
        };
        geometry.conv("backbone.stem".into(), stem)?;
        for (index, block) in self.blocks().enumerate() {
            block.trace(&format!("backbone.blocks.{index}"), geometry)?;
        }
        Ok(())
    }
}

impl SimResNet {
    fn stem_features(&self, images: Tensor<4>, frames: &Frames) -> Result<FeatureMap> {
        let input = FeatureMap::from_images(images);
        let taps = self.stem.taps(frames, &input.grid)?;
        let grid = *taps.output_grid();
        // [n, h, w, c] -> [n, h / stride, w / stride, stem_channels]
        let x = self.stem.convolve(input.values, &taps)?;
        Ok(FeatureMap { values: self.norm.forward(x, &frames.mask(&grid)?)?, grid })
    }

    fn block_features(
        &self,
        block: &SimBlock,
        input: FeatureMap,
        frames: &Frames,
    ) -> Result<FeatureMap> {
        let Some(poses) = &self.block_poses else { return block.forward_gated(input, frames) };
        if frames.equivariance() == Equivariance::None {
            return block.forward(input, frames);
        }
        let grid = block.conv1.output_grid(&input.grid)?;
        // The features are an image of their own, its pixels the positions.
        // [n, h, w, c] -> [n, h, w, 1]
        let brightness = input.values.clone().detach().mean_dim(3);
        let own = poses.frames(&brightness, frames.equivariance())?;
        let own = own.with_active_only(frames.active_only());
        let output = block.forward(FeatureMap::from_images(input.values), &own)?;
        Ok(FeatureMap { grid, ..output })
    }
}

impl Backbone for SimResNet {
    fn grids(&self, image: &Grid) -> Result<Vec<Grid>> {
        let mut grids = vec![self.stem.output_grid(image)?];
        for block in &self.blocks {
            let next = block.conv1.output_grid(&grids[grids.len() - 1])?;
            if !grids.contains(&next) {
                grids.push(next);
            }
        }
        Ok(grids)
    }

    fn forward(&self, images: Tensor<4>, frames: &Frames) -> Result<FeatureMap> {
        let stem = self.stem_features(images, frames)?;
        self.blocks.iter().try_fold(stem, |x, block| self.block_features(block, x, frames))
    }

    fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(String, FeatureMap)>> {
        let mut x = self.stem_features(images, frames)?;
        let mut maps = vec![("stem".to_string(), x.clone())];
        for (index, block) in self.blocks.iter().enumerate() {
            x = self.block_features(block, x, frames)?;
            maps.push((format!("blocks.{index}"), x.clone()));
        }
        Ok(maps)
    }
}
