//! Pixels to patches and back: the gather of a tile and its adjoint.
//!
//! A tap of a position is the weighted sum of four pixels, contiguous over the channels; a
//! relative-pose kernel wants three such sums of the same four pixels. Sizes are checked here, for
//! both the portable loops of this file and the vector loops of [`super::gather_avx2`].

use super::tile::{CORNERS, LANES, Tile};
use crate::simd::prefetch;

/// Announces the images of a tile, `[pixels, channels]` from pixel `first` of the batch on, as far
/// as `known` (a pixel of the batch) does not say that they were announced before. Returns how far
/// they are now. Images too large to stay in the cache are left alone.
pub(super) fn announce(
    values: &[f32],
    first: usize,
    channels: usize,
    tile: &Tile,
    known: usize,
) -> usize {
    const LARGEST: usize = 64 << 10;
    let pixels = tile.pixels();
    let start = pixels.start.max(known);
    if start < pixels.end && pixels.len() * channels <= LARGEST {
        prefetch(&values[(start - first) * channels..(pixels.end - first) * channels]);
    }
    pixels.end.max(known)
}

/// Fills a panel with samples of `input` `[pixels, channels]`: row p, `pitch` values long, begins
/// with the patch `[taps, tap_width]` of position p; what follows it in the row is left alone.
pub(super) fn gather(panel: &mut [f32], pitch: usize, input: &[f32], channels: usize, tile: &Tile) {
    check_panel(panel.len(), pitch, channels, tile);
    assert!(tile.pixels().end * channels <= input.len(), "pixels of a tile");
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        let (panel, input) = (panel.as_mut_ptr(), input.as_ptr());
        // SAFETY: AVX2 and FMA are there. The panel has room for the tile's rows and the input
        // holds all of the tile's pixels: just checked.
        return unsafe { super::gather_avx2::gather(panel, pitch, input, channels, tile) };
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
/// `pixels` begins with pixel `first` of the batch.
pub(super) fn scatter(
    pixels: &mut [f32],
    first: usize,
    panel: &[f32],
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    check_panel(panel.len(), pitch, channels, tile);
    let range = tile.pixels();
    assert!(first <= range.start && (range.end - first) * channels <= pixels.len(), "pixels");
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // The address that pixel 0 of the batch would have; never read where it is not inside.
        let zero = pixels.as_mut_ptr().wrapping_sub(first * channels);
        // SAFETY: AVX2 and FMA are there. The panel holds the tile's rows and `pixels` all of the
        // tile's pixels: just checked.
        return unsafe { super::gather_avx2::scatter(zero, panel.as_ptr(), pitch, channels, tile) };
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

/// Fails unless every row of the tile has its place in the panel.
fn check_panel(len: usize, pitch: usize, channels: usize, tile: &Tile) {
    let width = tile.taps() * tile.tap_width(channels);
    assert!(width <= pitch && tile.positions() * pitch <= len, "panel of a tile");
}

/// Visits the terms of a tap: which of its sums, pixel of the batch, weight.
fn for_each_corner(
    tile: &Tile,
    tap: usize,
    position: usize,
    mut visit: impl FnMut(usize, usize, f32),
) {
    for pose in 0..tile.poses() {
        let used = if tile.exact()[tap * tile.poses() + pose] { 1 } else { CORNERS };
        for corner in 0..used {
            let at = ((tap * tile.poses() + pose) * CORNERS + corner) * LANES + position;
            for (block, weights) in tile.weights().into_iter().enumerate() {
                if let Some(weight) = weights.get(at) {
                    visit(block, tile.sampled_pixels()[at] as usize, *weight);
                }
            }
        }
    }
}
