//! A stack of the shape of ResNet-18, every convolution a similarity convolution.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use sren::{
    Frames, Grid, MaskedBatchNorm, MaskedBatchNormConfig, Result, SimConv2d, SimConv2dConfig, pool,
};

use super::block::Block;

/// Channels of the four stages; each but the first halves the grid.
const STAGES: [usize; 4] = [64, 128, 256, 512];
/// Blocks of a stage.
const BLOCKS: usize = 2;
/// Stride of the stem, and of the max pool that follows it in the original; a fixed max pool
/// would break scale equivariance, so the stem takes both strides.
const STEM_STRIDE: usize = 4;

/// Stem, four stages of two blocks, global max pool, linear head.
#[derive(Module, Debug)]
pub struct ResNet18 {
    stem: SimConv2d,
    norm: MaskedBatchNorm,
    blocks: Vec<Block>,
    head: Linear,
}

impl ResNet18 {
    /// A network for images of `channels` channels and `classes` classes.
    pub fn new(channels: usize, classes: usize, device: &Device) -> Result<Self> {
        let [first, .., last] = STAGES;
        let stem = SimConv2dConfig::new([channels, first], 7)
            .with_stride(STEM_STRIDE)
            .with_bias(false)
            .init(device)?;
        let mut blocks = Vec::new();
        let mut c_in = first;
        for (stage, c_out) in STAGES.into_iter().enumerate() {
            for block in 0..BLOCKS {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                blocks.push(Block::new([c_in, c_out], stride, device)?);
                c_in = c_out;
            }
        }
        let norm = MaskedBatchNormConfig::new(first).with_relu(true).init(device)?;
        Ok(Self { stem, norm, blocks, head: LinearConfig::new(last, classes).init(device) })
    }

    /// The grids that features live on, finest first, for images on `image`.
    pub fn grids(image: &Grid) -> Result<Vec<Grid>> {
        let strides = (0..STAGES.len()).map(|stage| STEM_STRIDE << stage);
        strides.map(|stride| Ok(image.cell_centred(stride)?)).collect()
    }

    /// Values that the layers give out for `batch` images on `image`, each kept for the backward
    /// pass: one output of every convolution and one of every batch norm.
    pub fn activations(image: &Grid, batch: usize) -> Result<usize> {
        let grids = Self::grids(image)?;
        // Two convolutions a block, and in each stage one more: the stem or a shortcut.
        let layers = 2 * BLOCKS + 1;
        let stage = |(grid, channels): (&Grid, usize)| 2 * layers * batch * grid.len() * channels;
        Ok(grids.iter().zip(STAGES).map(stage).sum())
    }

    /// `[n, h, w, channels]` -> logits `[n, classes]`.
    pub fn forward(&self, images: Tensor<4>, frames: &Frames, image: &Grid) -> Result<Tensor<2>> {
        let taps = self.stem.taps(frames, image)?;
        let mut grid = *taps.output_grid();
        // [n, h, w, channels] -> [n, h / 4, w / 4, 64]
        let x = self.stem.forward(images, &taps)?;
        let mut x = self.norm.forward(x, taps.shared_active())?;
        for block in &self.blocks {
            (x, grid) = block.forward(x, frames, &grid)?;
        }
        // [n, h / 32, w / 32, 512] -> [n, 512] -> [n, classes]
        Ok(self.head.forward(pool::global_max(x)?))
    }
}
