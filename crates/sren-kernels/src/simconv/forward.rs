//! Gather a tile of patches, multiply, write; tiles are shared out over the threads.

use std::ops::Range;

use super::SimConv;
use super::gather::{announce, gather};
use super::kernel::COLUMNS;
use super::plan::Plan;
use super::product::{Base, Packed, Rows, RowsMut, multiply};
use super::tile::{Positions, Tile};
use crate::buffer::{Part, in_parts};
use crate::simd::LineBuffer;
use crate::taps::TapTable;

/// Positions that one thread computes, and the rows of the output among which they lie.
struct Stretch<'a> {
    positions: Positions<'a>,
    rows: Range<usize>,
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
    let plan = Plan::new(conv, taps);
    let weight = Packed::new(weight, weight.len() / conv.c_out, conv.c_out);
    // Filled up to whole strips of the product.
    let bias = bias.map(|bias| {
        let mut bias = bias.to_vec();
        bias.resize(conv.c_out.next_multiple_of(COLUMNS), 0.0);
        bias
    });
    let bias = bias.as_deref();
    let stretches = stretches(taps, plan.positions);
    let lengths: Vec<usize> = stretches.iter().map(|s| s.rows.len() * conv.c_out).collect();
    let work = |scratch: &mut Scratch, index: usize, output: &mut Part| {
        let Stretch { positions, rows } = &stretches[index];
        let (positions, output) = (*positions, output.until(lengths[index]));
        match positions {
            Positions::Range(..) => {
                tile_forward(conv, taps, plan, input, &weight, bias, positions, scratch, output);
            }
            Positions::List(list) => {
                let mut buffer = std::mem::take(&mut scratch.product);
                let product = buffer.take(list.len() * conv.c_out);
                tile_forward(conv, taps, plan, input, &weight, bias, positions, scratch, product);
                for (row, &position) in product.chunks_exact(conv.c_out).zip(list) {
                    let at = (position as usize - rows.start) * conv.c_out;
                    output[at..][..conv.c_out].copy_from_slice(row);
                }
                scratch.product = buffer;
            }
        }
    };
    in_parts(conv.output_len(taps), &lengths, Scratch::default, work).0
}

/// Cuts the positions into tiles. They ascend, so each owns a stretch of the output.
fn stretches(taps: &TapTable, length: usize) -> Vec<Stretch<'_>> {
    let all = Positions::of(taps);
    let (mut first_row, mut stretches) = (0, Vec::new());
    for start in (0..all.len()).step_by(length) {
        let positions = all.slice(start, (start + length).min(all.len()));
        let end_row = positions.get(positions.len() - 1) + 1;
        stretches.push(Stretch { positions, rows: first_row..end_row });
        first_row = end_row;
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
        return multiply(&mut product, left, weight.strips(), 0, base);
    }
    tile.place(taps, positions);
    scratch.announced = announce(input, conv.c_in, taps, positions, scratch.announced);
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
        multiply(&mut product, left, weight.strips(), group.first, base);
    }
}
