//! The colour of an image's border.

use sren_math::border_mean;

/// The mean of the outermost pixels of `[h, w, c]`, by channel.
pub(super) fn border_colour(pixels: &[f32], [h, w, c]: [usize; 3]) -> Vec<f32> {
    let level = |channel: usize| {
        let plane: Vec<f32> = pixels.iter().skip(channel).step_by(c).copied().collect();
        border_mean(&plane, h, w) as f32
    };
    (0..c).map(level).collect()
}
