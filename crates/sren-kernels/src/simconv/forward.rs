//! Forward pass: gather a tile of patches, multiply, write. Tiles are distributed over the threads.

use std::ops::Range;

use super::SimConv;
use super::gather::gather;
use super::inside::Cut;
use super::kernel::Base;
use super::plan::Plan;
use super::positions::Positions;
use super::prefetch::{Prefetched, Prefetcher};
use super::product::{Packed, Rows, RowsMut, multiply};
use super::tile::Tile;
use crate::buffer::{Part, in_parts};
use crate::simd::LineBuffer;
use crate::taps::TapTable;

/// Positions of one tile, and the rows of the output up to the last of them.
struct TileRange<'a> {
    positions: Positions<'a>,
    rows: Range<usize>,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    tile: Tile,
    panel: LineBuffer,
    sums: LineBuffer,
    prefetched: Prefetched,
}

/// Least length of the repeated bias: copies of fewer values are inefficient.
const PATTERN: usize = 512;

pub(super) fn forward(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    output_len: usize,
) -> Vec<f32> {
    let plan = Plan::new(conv, taps);
    let weight = Packed::new(weight, weight.len() / conv.c_out, conv.c_out);
    // The initial values of several rows.
    let bias = bias.map_or_else(|| vec![0.0; conv.c_out], <[f32]>::to_vec);
    let bias = bias.repeat(PATTERN.div_ceil(conv.c_out));
    let ranges = ranges(taps, plan.positions);
    let lengths: Vec<usize> = ranges.iter().map(|s| s.rows.len() * conv.c_out).collect();
    let work = |scratch: &mut Scratch, index: usize, output: &mut Part| {
        let TileRange { positions, rows } = &ranges[index];
        match *positions {
            Positions::Range(..) => {
                let sums = output.all(&bias);
                add_tile(conv, taps, plan, input, &weight, *positions, scratch, sums);
            }
            Positions::List(list) => {
                let mut buffer = std::mem::take(&mut scratch.sums);
                let sums = buffer.take(list.len() * conv.c_out);
                for rows in sums.chunks_mut(bias.len()) {
                    rows.copy_from_slice(&bias[..rows.len()]);
                }
                add_tile(conv, taps, plan, input, &weight, *positions, scratch, sums);
                let output = output.until(lengths[index]);
                for (row, &position) in sums.chunks_exact(conv.c_out).zip(list) {
                    let at = (position as usize - rows.start) * conv.c_out;
                    output[at..][..conv.c_out].copy_from_slice(row);
                }
                scratch.sums = buffer;
            }
        }
    };
    in_parts(output_len, &lengths, Scratch::default, work).0
}

/// Splits the positions into tiles. They ascend, so that each tile owns a range of output rows.
fn ranges(taps: &TapTable, length: usize) -> Vec<TileRange<'_>> {
    let all = Positions::of(taps);
    let (mut first_row, mut ranges) = (0, Vec::new());
    for start in (0..all.len()).step_by(length) {
        let positions = all.slice(start, (start + length).min(all.len()));
        let end_row = positions.get(positions.len() - 1) + 1;
        ranges.push(TileRange { positions, rows: first_row..end_row });
        first_row = end_row;
    }
    ranges
}

/// Adds the products of one tile to `sums` `[positions, c_out]`.
#[allow(clippy::too_many_arguments)]
fn add_tile(
    conv: &SimConv,
    taps: &TapTable,
    plan: Plan,
    input: &[f32],
    weight: &Packed,
    positions: Positions,
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    let (rows, tile) = (positions.len(), &mut scratch.tile);
    let mut sums = RowsMut::new(sums, rows, conv.c_out, conv.c_out);
    if let Some(left) = conv.pixels_as_panel(taps, input, positions) {
        return multiply(&mut sums, left, weight.strips(), 0, Base::Product);
    }
    tile.set_positions(taps, positions);
    let next = scratch.prefetched.next(input, conv.c_in, taps, positions);
    let mut prefetcher = Prefetcher::new([next, &[]], taps.kernel_size().pow(2));
    let panel = scratch.panel.take(rows * plan.pitch);
    for group in plan.groups() {
        let cut = if plan.skips_outside { Cut::Spans } else { Cut::Whole };
        tile.sample(taps, group.taps.clone(), conv.relative_pose, cut);
        gather(panel, plan.pitch, input, conv.c_in, tile);
        for part in tile.parts() {
            let columns = plan.columns(part.taps);
            let left = Rows::new(&panel[columns.start..], rows, columns.len(), plan.pitch);
            let (left, first) = (left.only(part.positions), group.first + columns.start);
            prefetcher.step();
            multiply(&mut sums, left, weight.strips(), first, Base::Product);
        }
    }
    prefetcher.finish();
}
