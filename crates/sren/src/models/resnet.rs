//! Residual networks of similarity convolutions.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use sren_kernels::TapTable;
use sren_math::Grid;

use super::block::{SimBlock, SimBlockConfig, dropout, grids_through};
use super::orientation::{Orientation, OrientationConfig, over_turns, turn_chances};
use super::second_look::{SecondLook, SecondLookConfig};
use super::window::{WindowLayer, WindowLayerConfig, Windows};
use crate::error::{Error, Result};
use crate::{
    Equivariance, Frames, MaskedBatchNorm, MaskedBatchNormConfig, PoseEstimator,
    PoseEstimatorConfig, PoseField, SimConv2d, SimConv2dConfig, pool,
};

/// Blocks on one grid.
#[derive(Config, Debug)]
pub struct StageConfig {
    /// Channels of every block.
    pub channels: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Stride of the first.
    pub stride: usize,
}

/// What becomes of the features of an image before the linear head.
#[derive(Config, Debug, PartialEq, Copy)]
pub enum Pool {
    /// Their mean, weighted with the gate.
    Mean,
    /// Maximum and mean, one after the other: twice the channels.
    MaxMean,
}

/// Configuration of a [`SimResNet`]. [`Architecture`](super::Architecture) has the well-known ones.
#[derive(Config, Debug)]
pub struct SimResNetConfig {
    /// Number of classes.
    pub classes: usize,
    /// Channels of the images.
    pub image_channels: usize,
    /// What the network follows.
    #[config(default = "Equivariance::Similarity")]
    pub equivariance: Equivariance,
    /// Channels after the stem.
    pub stem_channels: usize,
    /// Taps along one side of the stem's kernel, odd.
    pub stem_kernel: usize,
    /// Stride of the stem.
    pub stem_stride: usize,
    /// Layers between the image and the stem's convolution, inside of a window of `stem_kernel`
    /// taps a side around each position. The stem then takes what they leave of the window.
    #[config(default = "Vec::new()")]
    pub stem_window: Vec<WindowLayerConfig>,
    /// Distance of the stem's taps, in pixels, for a pose of scale 1.
    #[config(default = 1.0)]
    pub stem_kappa: f64,
    /// Distance of the other layers' taps, in steps of their input grid, for a pose of scale 1.
    #[config(default = 1.0)]
    pub kappa: f64,
    /// Whether kernels of blocks also depend on the angle between the frames of two positions.
    #[config(default = false)]
    pub relative_pose: bool,
    /// Whether only positions that have a pose are computed.
    #[config(default = true)]
    pub active_only: bool,
    /// Whether every block reads its poses anew, from the mean over the channels of its input: the
    /// paper's Algorithm 1. Errors then grow with depth; by default poses come from the image.
    #[config(default = false)]
    pub poses_per_block: bool,
    /// Part of the values in every block that training drops.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Part of what reaches the head's last layer that training drops.
    #[config(default = 0.0)]
    pub head_dropout: f64,
    /// A head that asks which way the image is turned, instead of a linear one.
    #[config(default = "None")]
    pub orientation: Option<OrientationConfig>,
    /// A second look at the image, turned upright, by a plain network of the same layout.
    #[config(default = "None")]
    pub second_look: Option<SecondLookConfig>,
    /// What becomes of the features before the head.
    #[config(default = "Pool::Mean")]
    pub pool: Pool,
    /// The stages, finest first.
    pub stages: Vec<StageConfig>,
    /// The pose estimator.
    #[config(default = "PoseEstimatorConfig::new()")]
    pub pose: PoseEstimatorConfig,
}

/// Stem, residual blocks, invariant pool, linear head. The poses of a batch are estimated once,
/// from the images, and shared by all layers, unless every block shall read its own. Made by
/// [`SimResNetConfig`].
#[derive(Module, Debug)]
pub struct SimResNet {
    /// The layers inside of the stem's window, if it has any.
    pub window: Vec<WindowLayer>,
    /// The convolution that reads the image, or the last that reads the window.
    pub stem: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm: MaskedBatchNorm,
    /// The residual blocks.
    pub blocks: Vec<SimBlock>,
    /// The head's hidden layer, if it asks which way the image is turned.
    pub orientation: Option<Orientation>,
    /// Before the head, in training.
    pub head_dropout: Option<Dropout>,
    /// From pooled features, or from the hidden layer, to classes.
    pub head: Linear,
    /// The network that looks at the image turned upright, if there is one.
    pub second_look: Option<SecondLook>,
    #[module(skip)]
    equivariance: Equivariance,
    #[module(skip)]
    pool: Pool,
    #[module(skip)]
    poses: PoseEstimator,
    stem_kernel: usize,
    stem_stride: usize,
    stem_kappa: f64,
    active_only: bool,
    poses_per_block: bool,
    image_channels: usize,
}

impl SimResNetConfig {
    /// A new network on `device`.
    pub fn init(&self, device: &Device) -> Result<SimResNet> {
        const OPERATION: &str = "SimResNetConfig::init";
        if self.classes < 2 {
            return Err(Error::shape(OPERATION, "at least 2 classes", self.classes.to_string()));
        }
        if self.stages.iter().any(|stage| stage.blocks == 0) {
            let got = format!("{:?}", self.stages.iter().map(|s| s.blocks).collect::<Vec<_>>());
            return Err(Error::shape(OPERATION, "stages of at least 1 block", got));
        }
        let (mut channels, mut side) = (self.image_channels, self.stem_kernel);
        let mut window = Vec::new();
        for layer in &self.stem_window {
            window.push(layer.init(channels, device)?);
            (channels, side) = (layer.channels, side.div_ceil(layer.stride));
        }
        let stem = SimConv2dConfig::new([channels, self.stem_channels], side).with_bias(false);
        let stem = match window.is_empty() {
            true => stem.with_stride(self.stem_stride).with_kappa(self.stem_kappa),
            // One position a window, its centre.
            false => stem.with_stride(side),
        };
        let blocks = self.blocks(device)?;
        let c_in = self.stages.last().map_or(self.stem_channels, |stage| stage.channels);
        let pooled = match self.pool {
            Pool::Mean => c_in,
            Pool::MaxMean => 2 * c_in,
        };
        let orientation = self.orientation.as_ref().map(|o| o.init(c_in, pooled, device));
        let second_look = self.second_look.as_ref().map(|look| look.init(self, device));
        let last = self.orientation.as_ref().map_or(pooled, |orientation| orientation.channels);
        Ok(SimResNet {
            window,
            stem: stem.init(device)?,
            norm: MaskedBatchNormConfig::new(self.stem_channels).with_relu(true).init(device)?,
            blocks,
            orientation: orientation.transpose()?,
            head_dropout: dropout(self.head_dropout, OPERATION)?,
            head: LinearConfig::new(last, self.classes).init(device),
            second_look: second_look.transpose()?,
            equivariance: self.equivariance,
            pool: self.pool,
            poses: self.pose.init()?,
            stem_kernel: self.stem_kernel,
            stem_stride: self.stem_stride,
            stem_kappa: self.stem_kappa,
            active_only: self.active_only,
            poses_per_block: self.poses_per_block,
            image_channels: self.image_channels,
        })
    }

    /// New residual blocks of all stages.
    pub(super) fn blocks(&self, device: &Device) -> Result<Vec<SimBlock>> {
        let mut blocks = Vec::new();
        let mut c_in = self.stem_channels;
        for stage in &self.stages {
            for block in 0..stage.blocks {
                let config = SimBlockConfig::new([c_in, stage.channels])
                    .with_stride(if block == 0 { stage.stride } else { 1 })
                    .with_kappa(self.kappa)
                    .with_relative_pose(self.relative_pose)
                    .with_dropout(self.dropout);
                blocks.push(config.init(device)?);
                c_in = stage.channels;
            }
        }
        Ok(blocks)
    }
}

impl SimResNet {
    /// What the network follows.
    pub fn equivariance(&self) -> Equivariance {
        self.equivariance
    }

    /// The grids that features live on, finest first, for images on `image`.
    pub fn grids(&self, image: &Grid) -> Result<Vec<Grid>> {
        grids_through(image.cell_centred(self.stem_stride)?, &self.blocks)
    }

    /// The local frames of images `[n, h, w, c]` on every grid of the network.
    pub fn frames(&self, images: &Tensor<4>) -> Result<Frames> {
        self.frames_of(self.pose_fields(images)?)
    }

    /// The pose fields of images `[n, h, w, c]` on every grid of the network.
    pub fn pose_fields(&self, images: &Tensor<4>) -> Result<Vec<PoseField>> {
        let [n, h, w, c] = images.dims();
        if c != self.image_channels {
            let expected = format!("images of {} channels", self.image_channels);
            return Err(Error::shape("SimResNet::pose_fields", expected, c.to_string()));
        }
        let grids = self.grids(&Grid::pixels(h, w))?;
        if self.reads_no_poses() {
            let fields = grids.iter().map(|grid| PoseField::identity(*grid, n));
            return Ok(fields.collect::<std::result::Result<_, _>>()?);
        }
        self.poses.fields(images, &grids)
    }

    /// The frames that the network computes in, from the pose field of each of its grids.
    pub fn frames_of(&self, fields: Vec<PoseField>) -> Result<Frames> {
        let frames = Frames::new(fields, self.equivariance)?;
        Ok(frames.with_active_only(self.computes_active_only()))
    }

    /// Whether only positions that have a pose are computed.
    pub fn computes_active_only(&self) -> bool {
        self.active_only && !self.reads_no_poses()
    }

    /// Whether nothing is followed and every position is computed: a plain CNN. One with windows
    /// still has them only where there is a pose, and is gated.
    fn reads_no_poses(&self) -> bool {
        self.equivariance == Equivariance::None && self.window.is_empty()
    }

    /// The equivariant feature maps of the stem and of every block, first to last, with their grids:
    /// they turn, grow and move with the image.
    pub fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(Tensor<4>, Grid)>> {
        let mut maps = vec![self.stem_features(images, frames)?];
        for block in &self.blocks {
            let (x, grid) = maps[maps.len() - 1].clone();
            maps.push(self.block_features(block, x, frames, &grid)?);
        }
        Ok(maps)
    }

    /// The last of the [feature maps](Self::feature_maps), what the head sees.
    pub fn features(&self, images: Tensor<4>, frames: &Frames) -> Result<(Tensor<4>, Grid)> {
        let (mut x, mut grid) = self.stem_features(images, frames)?;
        for block in &self.blocks {
            (x, grid) = self.block_features(block, x, frames, &grid)?;
        }
        Ok((x, grid))
    }

    /// Images `[n, h, w, c]` -> logits `[n, classes]`.
    pub fn forward(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        let frames = self.frames(&images)?;
        self.forward_in(images, &frames)
    }

    /// [`forward`](Self::forward) in frames that are there already.
    pub fn forward_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<2>> {
        let upright = self.orientation.as_ref().map_or(0.0, Orientation::upright);
        let scores = self.scores_in(images.clone(), frames)?;
        let first = over_turns(scores.clone(), upright);
        let Some(look) = &self.second_look else { return Ok(first) };
        let second = look.forward_turned(&images, &turn_chances(scores, upright))?;
        Ok(look.together(first, second))
    }

    /// Images `[n, h, w, c]` -> scores `[n, turns, classes]`, one row for each way the image may be
    /// turned, upright first; one row in all if the head does not ask, or the network does not follow
    /// rotations.
    pub fn scores_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<3>> {
        let (x, grid) = self.features(images, frames)?;
        self.scores_of(x, &grid, frames)
    }

    /// What the head makes of the last features `[n, h, w, c]`, on `grid`: the
    /// [scores](Self::scores_in).
    pub fn scores_of(&self, x: Tensor<4>, grid: &Grid, frames: &Frames) -> Result<Tensor<3>> {
        let gate = frames.gate(grid, &x.device())?;
        // [n, h, w, c] -> [n, c] or [n, 2 c]
        let pooled = match self.pool {
            Pool::Mean => pool::gated_mean(x.clone(), gate)?,
            Pool::MaxMean => {
                let max = pool::global_max(x.clone())?;
                Tensor::cat(vec![max, pool::gated_mean(x.clone(), gate)?], 1)
            }
        };
        let hidden = match &self.orientation {
            None => pooled.unsqueeze_dim::<3>(1),
            Some(orientation) => {
                let moments = orientation.moments(x, frames.field(grid)?);
                orientation.forward(pooled, moments, self.equivariance)
            }
        };
        let hidden = match &self.head_dropout {
            Some(dropout) => dropout.forward(hidden),
            None => hidden,
        };
        Ok(self.head.forward(hidden))
    }

    fn block_features(
        &self,
        block: &SimBlock,
        x: Tensor<4>,
        frames: &Frames,
        grid: &Grid,
    ) -> Result<(Tensor<4>, Grid)> {
        if !self.poses_per_block || self.equivariance == Equivariance::None {
            return block.forward(x, frames, grid);
        }
        // Features are an image of their own, its pixels the positions.
        let [_, h, w, _] = x.dims();
        let pixels = Grid::pixels(h, w);
        let grids = match block.conv1.output_grid(&pixels)? {
            same if same == pixels => vec![pixels],
            coarser => vec![pixels, coarser],
        };
        // [n, h, w, c] -> [n, h, w, 1]
        let brightness = x.clone().detach().mean_dim(3);
        let own = self.frames_of(self.poses.fields(&brightness, &grids)?)?;
        let (x, _) = block.forward(x, &own, &pixels)?;
        Ok((x, block.conv1.output_grid(grid)?))
    }

    fn stem_features(&self, images: Tensor<4>, frames: &Frames) -> Result<(Tensor<4>, Grid)> {
        let taps = self.stem_taps(&images, frames)?;
        let grid = *taps.output_grid();
        // [n, h, w, c] -> [n, h / stride, w / stride, stem_channels]
        let x = if self.window.is_empty() {
            self.stem.forward(images, &taps)?
        } else {
            // [n, h, w, c] -> [windows, k, k, c] -> [windows, 1, 1, stem_channels]
            let windows = Windows::read(&images, &taps)?;
            let windows = self.window.iter().try_fold(windows, Windows::through)?;
            windows.convolved(&self.stem)?.in_place(&taps)
        };
        Ok((self.norm.forward(x, &frames.mask(&grid)?)?, grid))
    }

    /// The taps of one window of the stem.
    pub(super) fn window_grid(&self) -> Grid {
        Grid::pixels(self.stem_kernel, self.stem_kernel)
    }

    /// The taps that read the image.
    fn stem_taps(&self, images: &Tensor<4>, frames: &Frames) -> Result<TapTable> {
        let [_, h, w, _] = images.dims();
        let pixels = Grid::pixels(h, w);
        let output = pixels.cell_centred(self.stem_stride)?;
        frames.taps(&pixels, &output, self.stem_kernel, self.stem_kappa as f32, false)
    }

    /// The features inside of the stem's windows, layer by layer: `[n, h, w, side * side * c]`. As
    /// all features, they are weighed by the gate of their position; the stem reads them without,
    /// and its output has the gate.
    pub fn window_maps(&self, images: &Tensor<4>, frames: &Frames) -> Result<Vec<Tensor<4>>> {
        if self.window.is_empty() {
            return Ok(Vec::new());
        }
        let taps = self.stem_taps(images, frames)?;
        let gate = frames.gate(taps.output_grid(), &images.device())?;
        let mut windows = Windows::read(images, &taps)?;
        let mut maps = Vec::new();
        for layer in &self.window {
            windows = windows.through(layer)?;
            maps.push(windows.clone().in_place(&taps) * gate.clone());
        }
        Ok(maps)
    }
}
