//! The residual backbone (the paper's Section 5).

use sren_math::Grid;

use super::Taps;
use super::frames::Frames;
use super::graph::Graph;
use super::simconv::{Features, simconv};
use crate::error::Result;
use crate::models::{Shortcut, SimBlock, SimResNet};
use crate::pose::Equivariance;

/// The last feature map. Stages are named by where the shape changes.
pub(super) fn backbone(
    g: &mut Graph,
    network: &SimResNet,
    images: &Features,
    frames: &mut Frames,
    how: Taps,
) -> Result<Features> {
    let mut x = g.scope("stem", |g| -> Result<Features> {
        let x = simconv(g, &network.stem, Some(&network.norm), images, frames, how)?;
        active(g, x, frames)
    })?;
    let (mut stage, mut number) = (0, 0);
    for block in &network.blocks {
        // A block that changes neither stride nor channels belongs to the stage before it.
        let begins = stage == 0 || block.shortcut.is_some();
        (stage, number) = if begins { (stage + 1, 1) } else { (stage, number + 1) };
        let name = format!("stage{stage}.block{number}");
        x = match &network.block_poses {
            Some(poses) if frames.group() != Equivariance::None => {
                let group = frames.group();
                // The features are an image of their own.
                let pixels = Grid::pixels(x.grid.height, x.grid.width);
                let mut own = g.scope(&format!("{name}.pose"), |g| -> Result<Frames> {
                    // [n, c, h, w] -> [n, 1, h, w]
                    let sum = g.reduce("ReduceSum", &x.values, &[1], true);
                    let values = g.div(&sum, x.channels as f32);
                    let brightness = Features { values, channels: 1, grid: pixels };
                    let mut own = Frames::estimated(g, poses, group, &brightness)?;
                    own.field(g, &block.conv1.output_grid(&pixels)?)?;
                    Ok(own)
                })?;
                let grid = block.conv1.output_grid(&x.grid)?;
                let input = Features { grid: pixels, ..x };
                Features { grid, ..residual(g, &name, block, &input, &mut own, how)? }
            }
            _ => residual(g, &name, block, &x, frames, how)?,
        };
    }
    Ok(x)
}

/// `g relu(x + norm(conv(g relu(norm(conv(x))))))`
fn residual(
    g: &mut Graph,
    name: &str,
    block: &SimBlock,
    input: &Features,
    frames: &mut Frames,
    how: Taps,
) -> Result<Features> {
    let y = g.scope(&format!("{name}.conv1"), |g| {
        let y = simconv(g, &block.conv1, Some(&block.norm1), input, frames, how)?;
        active(g, y, frames)
    })?;
    let y = g.scope(&format!("{name}.conv2"), |g| {
        simconv(g, &block.conv2, Some(&block.norm2), &y, frames, how)
    })?;
    let x = match &block.shortcut {
        None => input.clone(),
        Some(Shortcut { conv, norm }) => g.scope(&format!("{name}.shortcut"), |g| {
            simconv(g, conv, Some(norm), input, frames, how)
        })?,
    };
    g.scope(&format!("{name}.sum"), |g| {
        let sum = g.add(&y.values, &x.values);
        active(g, Features { values: sum, ..y }, frames)
    })
}

/// ReLU and gate.
fn active(g: &mut Graph, x: Features, frames: &mut Frames) -> Result<Features> {
    let values = g.unary("Relu", &x.values);
    Ok(Features { values: frames.gated(g, &values, &x.grid)?, ..x })
}
