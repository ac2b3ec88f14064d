//! The bilinear gather of patches and its adjoint, the bilinear scatter.
//!
//! A tap of a position is the weighted sum of four pixels, contiguous over the channels; a
//! relative-pose kernel has three such sums of the same four pixels. Sizes are checked here, for
//! both the portable loops of this file and the vector loops of `gather_vector`.

use std::ops::Range;

use super::inside::RUN;
use super::tile::{CORNERS, LANES, Tile, used_corners};

/// Fills a panel with samples of `input` `[pixels, channels]`: row p, `pitch` values long, starts
/// with the patch `[taps, tap_width]` of position p; the rest of the row stays unchanged.
pub(super) fn gather(panel: &mut [f32], pitch: usize, input: &[f32], channels: usize, tile: &Tile) {
    check_panel(panel.len(), pitch, channels, tile);
    check_pixels(input.len(), 0, channels, tile);
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        let (panel, input) = (panel.as_mut_ptr(), input.as_ptr());
        // SAFETY: AVX2 and FMA are available. The panel has room for the tile's rows and the input
        // holds all of the tile's pixels: just checked.
        return unsafe { super::gather_vector::gather(panel, pitch, input, channels, tile) };
    }
    let width = tile.tap_width(channels);
    for position in 0..tile.positions() {
        let row = &mut panel[position * pitch..];
        for (tap, patch) in row.chunks_exact_mut(width).take(tile.taps()).enumerate() {
            patch.fill(0.0);
            for_each_corner(tile, tap, position, |block, pixel, weight| {
                let patch = &mut patch[block * channels..][..channels];
                let pixel = &input[pixel * channels..][..channels];
                patch.iter_mut().zip(pixel).for_each(|(sum, f)| *sum += weight * f);
            });
        }
    }
}

/// The adjoint of [`gather`]: adds the gradients of the patches to those of the pixels, where
/// `pixels` starts at pixel `first` of the batch.
pub(super) fn scatter(
    pixels: &mut [f32],
    first: usize,
    panel: &[f32],
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    check_panel(panel.len(), pitch, channels, tile);
    check_pixels(pixels.len(), first, channels, tile);
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // The address of pixel 0 of the batch, if it were in `pixels`; never dereferenced outside.
        let zero = pixels.as_mut_ptr().wrapping_sub(first * channels);
        // SAFETY: AVX2 and FMA are available. The panel holds the tile's rows and `pixels` all of the
        // tile's pixels: just checked.
        return unsafe {
            super::gather_vector::scatter(zero, panel.as_ptr(), pitch, channels, tile)
        };
    }
    let width = tile.tap_width(channels);
    for position in 0..tile.positions() {
        let row = &panel[position * pitch..];
        for (tap, patch) in row.chunks_exact(width).take(tile.taps()).enumerate() {
            for_each_corner(tile, tap, position, |block, pixel, weight| {
                let patch = &patch[block * channels..][..channels];
                let pixel = &mut pixels[(pixel - first) * channels..][..channels];
                pixel.iter_mut().zip(patch).for_each(|(sum, g)| *sum += weight * g);
            });
        }
    }
}

/// [`scatter`]s the gradients of a panel and overwrites them with the [`gather`]ed patches.
pub(super) fn exchange(
    pixels: &mut [f32],
    first: usize,
    panel: &mut [f32],
    pitch: usize,
    input: &[f32],
    channels: usize,
    tile: &Tile,
) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() && tile.poses() == 1 && !tile.is_relative() {
        check_panel(panel.len(), pitch, channels, tile);
        check_pixels(input.len(), 0, channels, tile);
        check_pixels(pixels.len(), first, channels, tile);
        let zero = pixels.as_mut_ptr().wrapping_sub(first * channels);
        let (panel, input) = (panel.as_mut_ptr(), input.as_ptr());
        // SAFETY: AVX2 and FMA are available. The panel holds the tile's rows, and both the input and
        // `pixels`, which is borrowed mutably, all of the tile's pixels: just checked.
        return unsafe {
            super::gather_vector::exchange(zero, panel, pitch, input, channels, tile)
        };
    }
    scatter(pixels, first, panel, pitch, channels, tile);
    gather(panel, pitch, input, channels, tile);
}

/// Panics unless the panel holds every row of the tile.
fn check_panel(len: usize, pitch: usize, channels: usize, tile: &Tile) {
    let width = tile.tap_width(channels).checked_mul(tile.taps());
    let rows = tile.positions().checked_mul(pitch);
    let fits = width.is_some_and(|width| width <= pitch) && rows.is_some_and(|rows| rows <= len);
    assert!(fits, "panel of a tile");
}

/// Panics unless `len` values, from pixel `first` of the batch on, hold all pixels of the tile.
fn check_pixels(len: usize, first: usize, channels: usize, tile: &Tile) {
    let Range { start, end } = tile.pixels();
    let values = end.checked_sub(first).and_then(|pixels| pixels.checked_mul(channels));
    assert!(first <= start && values.is_some_and(|values| values <= len), "pixels of a tile");
}

/// Visits the terms of a tap, unless it is skipped: index of the sum, pixel of the batch, weight.
fn for_each_corner(
    tile: &Tile,
    tap: usize,
    position: usize,
    mut visit: impl FnMut(usize, usize, f32),
) {
    if tile.mask(tap, position) >> (position % RUN) & 1 == 0 {
        return;
    }
    for pose in 0..tile.poses() {
        let sample = tap * tile.poses() + pose;
        let pixel = tile.sampled_pixels()[sample * LANES + position] as usize;
        let used = used_corners(tile.corners(), tile.exact()[sample]);
        for (corner, distance) in used.iter().enumerate() {
            let at = (sample * CORNERS + corner) * LANES + position;
            for (block, weights) in tile.weights().into_iter().enumerate() {
                if let Some(weight) = weights.get(at) {
                    visit(block, pixel + distance, *weight);
                }
            }
        }
    }
}
