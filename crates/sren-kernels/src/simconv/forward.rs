//! Gather a tile of patches, multiply, write; tiles are shared out over the threads.

use rayon::prelude::*;

use super::SimConv;
use super::gather::{announce, gather};
use super::kernel::COLUMNS;
use super::plan::Plan;
use super::product::{Base, Packed, Rows, RowsMut, multiply};
use super::tile::{Positions, Tile};
use crate::buffer::zeros;
use crate::simd::LineBuffer;
use crate::taps::TapTable;

/// Positions that one thread computes, and the stretch of the output from `first_row` on in which
/// they lie.
struct Stretch<'a> {
    positions: Positions<'a>,
    first_row: usize,
    output: &'a mut [f32],
}

/// What a thread needs over and over.
#[derive(Default)]
struct Scratch {
    tile: Tile,
    panel: LineBuffer,
    product: LineBuffer,
    /// Pixel of the batch up to which the input was announced.
    announced: usize,
}

pub(super) fn forward(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let mut output = zeros(conv.output_len(taps));
    let plan = Plan::new(conv, taps);
    let weight = Packed::new(weight, weight.len() / conv.c_out, conv.c_out);
    // Filled up to whole strips of the product.
    let bias = bias.map(|bias| {
        let mut bias = bias.to_vec();
        bias.resize(conv.c_out.next_multiple_of(COLUMNS), 0.0);
        bias
    });
    let bias = bias.as_deref();
    let stretches = stretches(conv, taps, plan.positions, &mut output);
    stretches.into_par_iter().for_each_init(Scratch::default, |scratch, stretch| {
        let Stretch { positions, first_row, output } = stretch;
        match positions {
            Positions::Range(..) => {
                tile_forward(conv, taps, plan, input, &weight, bias, positions, scratch, output);
            }
            Positions::List(list) => {
                let mut buffer = std::mem::take(&mut scratch.product);
                let product = buffer.take(list.len() * conv.c_out);
                tile_forward(conv, taps, plan, input, &weight, bias, positions, scratch, product);
                for (row, &position) in product.chunks_exact(conv.c_out).zip(list) {
                    let at = (position as usize - first_row) * conv.c_out;
                    output[at..][..conv.c_out].copy_from_slice(row);
                }
                scratch.product = buffer;
            }
        }
    });
    output
}

/// Cuts the positions into tiles. They ascend, so each owns a stretch of the output.
fn stretches<'a>(
    conv: &SimConv,
    taps: &'a TapTable,
    length: usize,
    output: &'a mut [f32],
) -> Vec<Stretch<'a>> {
    let all = Positions::of(taps);
    let (mut rest, mut first_row) = (output, 0);
    let mut stretches = Vec::new();
    for start in (0..all.len()).step_by(length) {
        let positions = all.slice(start, (start + length).min(all.len()));
        let end_row = positions.get(positions.len() - 1) + 1;
        let (output, after) = rest.split_at_mut((end_row - first_row) * conv.c_out);
        stretches.push(Stretch { positions, first_row, output });
        (rest, first_row) = (after, end_row);
    }
    stretches
}

/// One tile, into `product` `[positions, c_out]`.
#[allow(clippy::too_many_arguments)]
fn tile_forward(
    conv: &SimConv,
    taps: &TapTable,
    plan: Plan,
    input: &[f32],
    weight: &Packed,
    bias: Option<&[f32]>,
    positions: Positions,
    scratch: &mut Scratch,
    product: &mut [f32],
) {
    let (rows, tile) = (positions.len(), &mut scratch.tile);
    let mut product = RowsMut::new(product, rows, conv.c_out, conv.c_out);
    if let Some(left) = conv.pixels_as_panel(taps, input, positions) {
        let base = bias.map_or(Base::Zero, Base::Row);
        return multiply(&mut product, left, weight, 0, base);
    }
    tile.place(taps, positions);
    scratch.announced = announce(input, 0, conv.c_in, tile, scratch.announced);
    let panel = scratch.panel.take(rows * plan.pitch);
    for group in plan.groups() {
        tile.sample(taps, group.taps.clone(), conv.relative_pose);
        gather(panel, plan.pitch, input, conv.c_in, tile);
        let left = Rows::new(panel, rows, group.width, plan.pitch);
        let base = match (group.first, bias) {
            (0, Some(bias)) => Base::Row(bias),
            (0, None) => Base::Zero,
            _ => Base::Product,
        };
        multiply(&mut product, left, weight, group.first, base);
    }
}
