//! Gather a tile of patches, multiply, write; tiles are shared out over the threads.

use rayon::prelude::*;

use super::SimConv;
use super::gather::gather;
use super::product::{Matrix, multiply};
use super::tile::{Positions, Tile};
use crate::taps::TapTable;

/// Positions in a tile: enough for the matrix product, few enough for the panel to stay in cache.
pub(super) fn tile_len(panel_width: usize) -> usize {
    const PANEL_VALUES: usize = 1 << 17;
    (PANEL_VALUES / panel_width.max(1)).clamp(16, 1024)
}

pub(super) fn forward(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let mut output = vec![0.0; conv.output_len(taps)];
    let positions = Positions::of(taps);
    let width = taps.kernel_size().pow(2) * conv.tap_width();
    let length = tile_len(width);

    // Tiles of ascending positions own disjoint stretches of the output.
    let mut stretches = Vec::new();
    let (mut rest, mut start_row) = (&mut output[..], 0);
    for start in (0..positions.len()).step_by(length) {
        let tile = positions.slice(start, (start + length).min(positions.len()));
        let end_row = tile.get(tile.len() - 1) + 1;
        let (stretch, after) = rest.split_at_mut((end_row - start_row) * conv.c_out);
        stretches.push((tile, start_row, stretch));
        (rest, start_row) = (after, end_row);
    }

    stretches.into_par_iter().for_each_init(
        || (Tile::default(), Vec::new(), Vec::new()),
        |(tile, panel, product), (positions, start_row, stretch)| {
            let rows = positions.len();
            tile.fill(taps, positions, conv.relative_pose);
            panel.resize(rows * width, 0.0);
            gather(panel, input, tile, taps.poses(), conv.c_in);
            product.resize(rows * conv.c_out, 0.0);
            if let Some(bias) = bias {
                product.chunks_exact_mut(conv.c_out).for_each(|row| row.copy_from_slice(bias));
            }
            let (left, right) =
                (Matrix::new(panel, rows, width), Matrix::new(weight, width, conv.c_out));
            multiply(product, left, right, bias.is_some());
            for (index, row) in product.chunks_exact(conv.c_out).enumerate() {
                let at = (positions.get(index) - start_row) * conv.c_out;
                stretch[at..][..conv.c_out].copy_from_slice(row);
            }
        },
    );
    output
}
