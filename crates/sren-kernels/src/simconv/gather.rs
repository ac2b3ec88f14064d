//! Pixels to patches and back: the gather of a tile and its adjoint.
//!
//! A tap of a position is the weighted sum of four pixels, contiguous over the channels; a
//! relative-pose kernel wants three such sums of the same four pixels.

use super::tile::{CORNERS, Samples, Tile};

/// Fills a panel with samples of `input` `[pixels, channels]`: row p, `pitch` values long, begins
/// with the patch `[taps, tap_width]` of position p; what follows it in the row is left alone.
pub(super) fn gather(
    panel: &mut [f32],
    pitch: usize,
    input: &[f32],
    channels: usize,
    tile: &Tile,
    taps: usize,
) {
    let width = tile.tap_width(channels);
    assert!(taps * width <= pitch && tile.positions() * pitch <= panel.len(), "panel");
    for position in 0..tile.positions() {
        let row = &mut panel[position * pitch..][..taps * width];
        for (tap, patch) in row.chunks_exact_mut(width).enumerate() {
            for pose in 0..tile.poses() {
                let samples = tile.samples(tap, pose);
                let mut blocks = patch.chunks_exact_mut(channels);
                for weight in weights(samples) {
                    let block = blocks.next().unwrap_or_default();
                    let (pixels, weights) = corners(samples.pixel, weight, tile, position);
                    blend(block, input, pixels, weights, pose > 0);
                }
            }
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
    taps: usize,
) {
    let width = tile.tap_width(channels);
    assert!(taps * width <= pitch && tile.positions() * pitch <= panel.len(), "panel");
    for position in 0..tile.positions() {
        let row = &panel[position * pitch..][..taps * width];
        for (tap, patch) in row.chunks_exact(width).enumerate() {
            for pose in 0..tile.poses() {
                let samples = tile.samples(tap, pose);
                for (block, weight) in patch.chunks_exact(channels).zip(weights(samples)) {
                    let (at, weights) = corners(samples.pixel, weight, tile, position);
                    for (pixel, weight) in at.into_iter().zip(weights) {
                        let start = (pixel as usize - first) * channels;
                        let place = &mut pixels[start..][..channels];
                        place.iter_mut().zip(block).for_each(|(p, g)| *p += weight * g);
                    }
                }
            }
        }
    }
}

/// The weights of the one or three sums of a tap.
fn weights<'a>(samples: Samples<'a>) -> impl Iterator<Item = &'a [f32]> {
    std::iter::once(samples.weight).chain(samples.turn.into_iter().flatten())
}

fn corners(
    pixel: &[u32],
    weight: &[f32],
    tile: &Tile,
    position: usize,
) -> ([u32; CORNERS], [f32; CORNERS]) {
    let n = tile.positions();
    (
        std::array::from_fn(|corner| pixel[corner * n + position]),
        std::array::from_fn(|corner| weight[corner * n + position]),
    )
}

fn blend(
    out: &mut [f32],
    input: &[f32],
    pixel: [u32; CORNERS],
    weight: [f32; CORNERS],
    accumulate: bool,
) {
    let c = out.len();
    let sources = pixel.map(|pixel| &input[pixel as usize * c..][..c]);
    for (i, out) in out.iter_mut().enumerate() {
        let sum: f32 = (0..CORNERS).map(|corner| weight[corner] * sources[corner][i]).sum();
        *out = if accumulate { *out + sum } else { sum };
    }
}
