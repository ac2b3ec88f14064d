//! Patches: the left operand of a similarity convolution.

use sren_math::element_count;

use super::gather::gather;
use super::inside::Cut;
use super::positions::Positions;
use super::tile::{POSITIONS, Tile};
use crate::buffer::in_blocks;
use crate::error::Result;
use crate::length::{check_channels, check_len};
use crate::taps::TapTable;

/// The patch of every active position of `input` `[batch, height, width, channels]`, sampled in the
/// position's frame: `[active, k, k, channels]`.
///
/// ```
/// use sren_kernels::{TapTable, patches};
/// use sren_math::Grid;
///
/// # fn main() -> sren_kernels::Result<()> {
/// let (input, output) = (Grid::pixels(3, 3), Grid { origin: [1.0, 1.0], ..Grid::pixels(1, 1) });
/// let taps = TapTable::plain(1, &input, &output, 3)?;
/// let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
/// assert_eq!(patches(&taps, &image, 1)?, image);
/// # Ok(())
/// # }
/// ```
pub fn patches(taps: &TapTable, input: &[f32], channels: usize) -> Result<Vec<f32>> {
    const OPERATION: &str = "patches";
    check_channels(OPERATION, channels)?;
    let input_shape = [taps.batch(), taps.input_grid().len(), channels];
    check_len(OPERATION, "input", input, element_count(OPERATION, &input_shape)?)?;
    let (positions, k) = (Positions::of(taps), taps.kernel_size());
    let len = element_count(OPERATION, &[positions.len(), k, k, channels])?;
    let row_len = k * channels;
    let patch_len = k * row_len;
    Ok(in_blocks(len, POSITIONS.saturating_mul(patch_len), |index, out| {
        let (start, count) = (index * POSITIONS, out.len() / patch_len);
        let (mut tile, mut panel) = (Tile::default(), vec![0.0; count * row_len]);
        tile.set_positions(taps, positions.slice(start, start + count));
        for row in 0..k {
            tile.sample(taps, row * k..(row + 1) * k, false, Cut::Whole);
            gather(&mut panel, row_len, input, channels, &tile);
            for (patch, values) in out.chunks_exact_mut(patch_len).zip(panel.chunks_exact(row_len))
            {
                patch[row * row_len..][..row_len].copy_from_slice(values);
            }
        }
    }))
}
