//! The residual block.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig};
use burn::tensor::{Device, Tensor};
use sren_math::Grid;

use crate::error::{Error, Result};
use crate::{Frames, Mask, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig};

/// Configuration of a [residual block](SimBlock).
#[derive(Config, Debug)]
pub struct SimBlockConfig {
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Every how many-th cell of the input grid the output grid has.
    #[config(default = 1)]
    pub stride: usize,
    /// Distance of neighbouring taps, in steps of the input grid, for a pose of scale 1.
    #[config(default = 1.0)]
    pub kappa: f64,
    /// Whether kernels also depend on the angle between the frames of the two positions.
    #[config(default = false)]
    pub relative_pose: bool,
    /// Part of the values between the two convolutions that training drops, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// `g relu(x + norm(conv(g relu(norm(conv(x))))))` with 3x3 similarity convolutions and g the gate.
/// Made by [`SimBlockConfig`].
#[derive(Module, Debug)]
pub struct SimBlock {
    /// First convolution: it strides and changes the channels.
    pub conv1: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm1: MaskedBatchNorm,
    /// Between the convolutions, in training.
    pub dropout: Option<Dropout>,
    /// Second convolution.
    pub conv2: SimConv2d,
    /// Its batch norm, with residual and ReLU.
    pub norm2: MaskedBatchNorm,
    /// Where stride or channels change.
    pub shortcut: Option<Shortcut>,
}

/// How the input of a block reaches its end where stride or channels change.
#[derive(Module, Debug)]
pub struct Shortcut {
    /// 1x1 convolution.
    pub conv: SimConv2d,
    /// Its batch norm.
    pub norm: MaskedBatchNorm,
}

impl SimBlockConfig {
    /// A new block on `device`.
    pub fn init(&self, device: &Device) -> Result<SimBlock> {
        let [c_in, c_out] = self.channels;
        let conv = |c: usize, stride: usize| {
            SimConv2dConfig::new([c, c_out], 3)
                .with_stride(stride)
                .with_kappa(self.kappa)
                .with_bias(false)
                .with_relative_pose(self.relative_pose)
                .init(device)
        };
        let norm = |relu| MaskedBatchNormConfig::new(c_out).with_relu(relu).init(device);
        let shortcut = if self.stride == 1 && c_in == c_out {
            None
        } else {
            let one = SimConv2dConfig::new(self.channels, 1).with_stride(self.stride);
            Some(Shortcut { conv: one.with_bias(false).init(device)?, norm: norm(false)? })
        };
        Ok(SimBlock {
            conv1: conv(c_in, self.stride)?,
            norm1: norm(true)?,
            dropout: dropout(self.dropout, "SimBlockConfig::init")?,
            conv2: conv(c_out, 1)?,
            norm2: norm(true)?,
            shortcut,
        })
    }
}

/// The layer that drops `part` of what passes it, where that is any.
pub(super) fn dropout(part: f64, operation: &'static str) -> Result<Option<Dropout>> {
    if !(0.0..1.0).contains(&part) {
        return Err(Error::shape(operation, "a dropout in 0..1", part.to_string()));
    }
    Ok((part > 0.0).then(|| DropoutConfig::new(part).init()))
}

/// The grids that features live on, one after the other, from `first` through `blocks`.
pub(super) fn grids_through(first: Grid, blocks: &[SimBlock]) -> Result<Vec<Grid>> {
    let mut grids = vec![first];
    for block in blocks {
        let next = block.conv1.output_grid(&grids[grids.len() - 1])?;
        if !grids.contains(&next) {
            grids.push(next);
        }
    }
    Ok(grids)
}

impl SimBlock {
    /// `[n, h, w, c_in]` on `grid` -> `[n, h / stride, w / stride, c_out]` and its grid.
    pub fn forward(&self, x: Tensor<4>, frames: &Frames, grid: &Grid) -> Result<(Tensor<4>, Grid)> {
        let taps = self.conv1.taps(frames, grid)?;
        let out = *taps.output_grid();
        let mask = frames.mask(&out)?;
        // [n, h, w, c_in] -> [n, h / stride, w / stride, c_out]
        let y = self.conv1.forward(x.clone(), &taps)?;
        let y = self.norm1.forward(y, &mask)?;
        let y = match &self.dropout {
            Some(dropout) => dropout.forward(y),
            None => y,
        };
        let y = self.conv2.forward(y, &self.conv2.taps(frames, &out)?)?;
        let x = match &self.shortcut {
            None => x,
            Some(Shortcut { conv, norm }) => {
                let ungated = Mask { gate: None, ..mask.clone() };
                norm.forward(conv.forward(x, &conv.taps(frames, grid)?)?, &ungated)?
            }
        };
        Ok((self.norm2.forward_residual(y, x, &mask)?, out))
    }
}
