//! Pixels to patches and back: the gather of a tile and its adjoint.

use super::tile::Tile;

/// Fills `panel` `[positions, taps, tap_width]` with the samples of `tile`: the weighted mean over
/// `poses` of bilinear samples of `input` `[pixels, channels]`.
pub(super) fn gather(panel: &mut [f32], input: &[f32], tile: &Tile, poses: usize, channels: usize) {
    let width = if tile.turns.is_empty() { channels } else { 3 * channels };
    panel.fill(0.0);
    let groups = tile.samples.chunks_exact(poses);
    for (tap, (patch, samples)) in panel.chunks_exact_mut(width).zip(groups).enumerate() {
        for (pose, sample) in samples.iter().enumerate() {
            for corner in 0..4 {
                let pixel = &input[sample.pixel[corner] as usize * channels..][..channels];
                let mut blocks = patch.chunks_exact_mut(channels);
                let mut add = |weight: f32| {
                    for (p, f) in blocks.next().into_iter().flatten().zip(pixel) {
                        *p += weight * f;
                    }
                };
                add(sample.weight[corner]);
                if let Some(turn) = tile.turns.get(tap * poses + pose) {
                    add(turn.cos[corner]);
                    add(turn.sin[corner]);
                }
            }
        }
    }
}

/// The adjoint of [`gather`]: adds the gradients of the patches to those of the pixels. `pixels`
/// begins with pixel `first` of the batch.
pub(super) fn scatter(
    pixels: &mut [f32],
    first: usize,
    panel: &[f32],
    tile: &Tile,
    poses: usize,
    channels: usize,
) {
    let width = if tile.turns.is_empty() { channels } else { 3 * channels };
    let groups = tile.samples.chunks_exact(poses);
    for (tap, (patch, samples)) in panel.chunks_exact(width).zip(groups).enumerate() {
        for (pose, sample) in samples.iter().enumerate() {
            for corner in 0..4 {
                let start = (sample.pixel[corner] as usize - first) * channels;
                let pixel = &mut pixels[start..][..channels];
                let mut blocks = patch.chunks_exact(channels);
                let mut add = |weight: f32| {
                    for (p, f) in pixel.iter_mut().zip(blocks.next().into_iter().flatten()) {
                        *p += weight * f;
                    }
                };
                add(sample.weight[corner]);
                if let Some(turn) = tile.turns.get(tap * poses + pose) {
                    add(turn.cos[corner]);
                    add(turn.sin[corner]);
                }
            }
        }
    }
}
