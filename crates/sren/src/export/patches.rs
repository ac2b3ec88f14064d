//! The patch encoder: a plain CNN on the patch around each position. Ours.
//!
//! Patches are sampled at all positions, but encoded only where there is a pose: a list of positions
//! that grows and shrinks with the images. Its first entry is always there, so that it is never
//! empty.

use sren_math::Grid;

use super::convolution::plain;
use super::frames::Frames;
use super::graph::{Graph, Operand, Value};
use super::protobuf::ElementType;
use super::simconv::{Features, Folded, weighted};
use crate::error::Result;
use crate::layers::{MaskedBatchNorm, SimConv2d};
use crate::models::PatchEncoder;
use crate::pose::TapLayout;

/// The feature map.
pub(super) fn backbone(
    g: &mut Graph,
    encoder: &PatchEncoder,
    images: &Features,
    frames: &mut Frames,
) -> Result<Features> {
    let grid = images.grid.cell_centred(encoder.stride)?;
    let field = frames.field(g, &grid)?;
    let (side, c) = (encoder.side as i64, images.channels as i64);
    let layout =
        TapLayout { reference_scale: encoder.reference_scale, ..TapLayout::new(encoder.side) };
    let mut patches = g.scope("patches", |g| -> Result<Value> {
        let samples = weighted(g, &field.poses, |g, pose| {
            frames.sample(g, &images.values, [&images.grid, &grid], layout, pose)
        })?;
        // [n, c, positions, taps] -> [n positions, c, side, side]
        let samples = match c {
            1 => samples,
            _ => g.transpose(&samples, &[0, 2, 1, 3]),
        };
        Ok(g.reshape(&samples, &[-1, c, side, side]))
    })?;
    let place = field.gate.as_ref().map(|gate| {
        g.scope("active", |g| {
            let gate = g.reshape(gate, &[-1]);
            let is_active = g.greater(&gate, 0.0);
            let index = g.unary("NonZero", &is_active);
            let index = g.reshape(&index, &[-1]);
            let first = g.list(&[0]);
            let index = g.concat(&[&first, &index], 0);
            patches = g.gather(&patches, &index, 0);
            // Where each position is in the list; 0 for those that are not.
            let active = g.cast(&is_active, ElementType::I64);
            let axis = 0i64.value(g);
            let number = g.op("CumSum", &[&active, &axis], &[]);
            g.mul(&number, &active)
        })
    });
    let mut x = (patches, Grid::pixels(encoder.side, encoder.side));
    for (index, layer) in encoder.layers.iter().enumerate() {
        x =
            g.scope(&format!("layer{}", index + 1), |g| convolve(g, &layer.conv, &layer.norm, x))?;
    }
    let channels = encoder.projection.weight.dims()[3];
    let width = channels as i64;
    let values = g.scope("projection", |g| -> Result<Value> {
        let (x, _) = convolve(g, &encoder.projection, &encoder.norm, x)?;
        let mut x = g.reshape(&x, &[-1, width]);
        if let Some(place) = &place {
            x = g.gather(&x, place, 0);
        }
        let [height, columns] = [grid.height, grid.width].map(|size| size as i64);
        // [n positions, c] -> [n, c, h, w]
        let x = g.reshape(&x, &[-1, height, columns, width]);
        let x = g.transpose(&x, &[0, 3, 1, 2]);
        frames.gated(g, &x, &grid)
    })?;
    Ok(Features { values, channels, grid })
}

/// Plain convolution, batch norm, ReLU of patches.
fn convolve(
    g: &mut Graph,
    conv: &SimConv2d,
    norm: &MaskedBatchNorm,
    (patches, grid): (Value, Grid),
) -> Result<(Value, Grid)> {
    let output = conv.output_grid(&grid)?;
    let kernel = Folded::new(conv, Some(norm)).kernel(g, 1);
    let x = plain(g, &patches, &kernel, [&grid, &output]);
    Ok((g.unary("Relu", &x), output))
}
