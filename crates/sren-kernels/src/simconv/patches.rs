//! The patches alone: what a similarity convolution multiplies with its kernel.

use super::check_len;
use super::gather::gather;
use super::inside::Cut;
use super::positions::Positions;
use super::tile::{POSITIONS, Tile};
use crate::buffer::in_blocks;
use crate::error::Result;
use crate::taps::TapTable;

/// The patch of every active position of `input` `[batch, height, width, channels]`, read in its
/// own frame: `[active, k, k, channels]`.
pub fn patches(taps: &TapTable, input: &[f32], channels: usize) -> Result<Vec<f32>> {
    let pixels = taps.batch() * taps.input_grid().len();
    check_len("patches", "input", input, pixels * channels)?;
    let (positions, k) = (Positions::of(taps), taps.kernel_size());
    let line = k * channels;
    Ok(in_blocks(positions.len() * k * line, POSITIONS * k * line, |index, out| {
        let (start, count) = (index * POSITIONS, out.len() / (k * line));
        let (mut tile, mut panel) = (Tile::default(), vec![0.0; count * line]);
        tile.place(taps, positions.slice(start, start + count));
        // One row of the kernel after the other.
        for row in 0..k {
            tile.sample(taps, row * k..(row + 1) * k, false, Cut::Whole);
            gather(&mut panel, line, input, channels, &tile);
            for (patch, values) in out.chunks_exact_mut(k * line).zip(panel.chunks_exact(line)) {
                patch[row * line..][..line].copy_from_slice(values);
            }
        }
    }))
}
