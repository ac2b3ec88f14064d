//! The canvas around an image, and the transform of the image on it.
//!
//! A photograph has a circular mask with a soft edge, `c + a(x) (f(x) - c)` with `a` the mask and
//! `c` the mean colour under it; the canvas around it has the colour `c`. A disc is the same at any
//! angle, so neither corners nor a black frame give a rotation away.

use sren_math::{About, Image, Interpolation, MathError, Similarity, warp};

/// Width of the mask's soft edge, as a fraction of the image's shorter side.
const SOFT_EDGE: f64 = 1.0 / 16.0;

/// A canvas with an image in its middle.
///
/// ```
/// use sren_data::Padding;
/// use sren_math::{Image, Similarity};
///
/// let padding = Padding { canvas: [96, 96], circular_mask: true };
/// let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2])?;
/// let rotated = padding.apply(&Image::zeros(64, 64, 3)?, &quarter)?;
/// assert_eq!((rotated.height(), rotated.width()), (96, 96));
/// # Ok::<(), sren_math::MathError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Height and width of the canvas.
    pub canvas: [usize; 2],
    /// Whether the image has a circular mask and the canvas its mean colour; otherwise the whole
    /// image is on black.
    pub circular_mask: bool,
}

impl Padding {
    /// `image` in the middle of the canvas, transformed about its centre. Returns an error if the
    /// canvas is smaller than the image.
    pub fn apply(&self, image: &Image, transform: &Similarity) -> Result<Image, MathError> {
        let [height, width] = self.canvas;
        let transformed = |image: Image| {
            if *transform == Similarity::IDENTITY {
                return image;
            }
            warp(&image, transform, About::Centre, Interpolation::Bilinear)
        };
        if !self.circular_mask {
            return Ok(transformed(image.padded(height, width)?));
        }
        let (centred, mean) = masked(image)?;
        let canvas = transformed(centred.padded(height, width)?);
        let value = |(at, v): (usize, &f32)| (v + mean[at % mean.len()]).clamp(0.0, 1.0);
        let data = canvas.data().iter().enumerate().map(value).collect();
        Image::new(height, width, image.channels(), data)
    }
}

/// The circular mask `a` of an image, row by row: 1 inside, 0 outside.
pub fn circular_mask(height: usize, width: usize) -> Vec<f32> {
    let [x, y] = [width, height].map(|size| 0.5 * (size as f64 - 1.0));
    let side = height.min(width) as f64;
    let value = |at: usize| {
        let radius = ((at % width) as f64 - x).hypot((at / width) as f64 - y);
        let t = ((0.5 * side - radius) / (SOFT_EDGE * side)).clamp(0.0, 1.0);
        (t * t * (3.0 - 2.0 * t)) as f32
    };
    (0..height * width).map(value).collect()
}

/// An image under the circular mask, `a (f - c)`, and its mean colour `c`.
pub fn masked(image: &Image) -> Result<(Image, Vec<f32>), MathError> {
    let (height, width, channels) = (image.height(), image.width(), image.channels());
    let mask = circular_mask(height, width);
    let mut mean = vec![0.0; channels];
    let total: f32 = mask.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    for (pixel, a) in image.data().chunks_exact(channels).zip(&mask) {
        mean.iter_mut().zip(pixel).for_each(|(sum, v)| *sum += a * v / total);
    }
    let value = |(at, v): (usize, &f32)| mask[at / channels] * (v - mean[at % channels]);
    let data = image.data().iter().enumerate().map(value).collect();
    Ok((Image::new(height, width, channels, data)?, mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_4;

    fn picture() -> Image {
        let data = (0..32 * 32 * 3).map(|i| ((i * 37) % 256) as f32 / 255.0).collect();
        Image::new(32, 32, 3, data).unwrap()
    }

    #[test]
    fn the_canvas_has_the_mean_colour_at_any_angle() {
        let padding = Padding { canvas: [48, 48], circular_mask: true };
        let rotation = Similarity::new(1.2, FRAC_PI_4, [0.0; 2]).unwrap();
        let upright = padding.apply(&picture(), &Similarity::IDENTITY).unwrap();
        let rotated = padding.apply(&picture(), &rotation).unwrap();
        let (_, mean) = masked(&picture()).unwrap();
        for corner in [0, 47, 48 * 47, 48 * 48 - 1] {
            for image in [&upright, &rotated] {
                let pixel = &image.data()[3 * corner..][..3];
                assert!(pixel.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
        // The middle is the image itself.
        let middle = 3 * (24 * 48 + 24);
        let own = &picture().data()[3 * (16 * 32 + 16)..][..3].to_vec();
        let pixel = &upright.data()[middle..][..3];
        assert!(pixel.iter().zip(own).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn a_rotation_by_90_degrees_moves_pixels_and_nothing_else() {
        let padding = Padding { canvas: [40, 40], circular_mask: true };
        let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        let upright = padding.apply(&picture(), &Similarity::IDENTITY).unwrap();
        let rotated = padding.apply(&picture(), &quarter).unwrap();
        for (y, x) in (0..40).flat_map(|y| (0..40).map(move |x| (y, x))) {
            let (from, to) = (3 * (y * 40 + x), 3 * (x * 40 + 39 - y));
            assert_eq!(upright.data()[from..from + 3], rotated.data()[to..to + 3]);
        }
    }
}
