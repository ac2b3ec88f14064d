//! How an image stands before a network: in the middle of a canvas, upright or transformed.
//!
//! A photograph is shown through a round window with a soft edge, `c + a(x) (f(x) - c)` with `c`
//! its mean colour in the window and `a` the window; around it the canvas has the colour `c`. A
//! disc is a disc at any angle, so neither corners nor a black frame tell how an image was turned.

use sren_math::{About, Image, Interpolation, MathError, Similarity, warp};

/// Width of the window's soft edge, as a part of the image's shorter side.
const SOFT_EDGE: f64 = 1.0 / 16.0;

/// A canvas and what of the image is shown on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Height and width of the canvas.
    pub canvas: [usize; 2],
    /// Whether the image is seen through a round window on its mean colour; else all of it is, on
    /// black.
    pub window: bool,
}

impl Padding {
    /// `image` in the middle of the canvas, transformed about its centre.
    pub fn show(&self, image: &Image, transform: &Similarity) -> Result<Image, MathError> {
        let [height, width] = self.canvas;
        let turn = |image: Image| {
            if *transform == Similarity::IDENTITY {
                return image;
            }
            warp(&image, transform, About::Centre, Interpolation::Bilinear)
        };
        if !self.window {
            return Ok(turn(image.padded(height, width)?));
        }
        let (centred, mean) = masked(image)?;
        let turned = turn(centred.padded(height, width)?);
        let value = |(at, v): (usize, &f32)| (v + mean[at % mean.len()]).clamp(0.0, 1.0);
        let data = turned.data().iter().enumerate().map(value).collect();
        Image::new(height, width, image.channels(), data)
    }
}

/// What is seen of an image through the window, `a (f - c)`, and its mean colour `c`.
pub fn masked(image: &Image) -> Result<(Image, Vec<f32>), MathError> {
    let (height, width, channels) = (image.height(), image.width(), image.channels());
    let [x, y] = image.centre();
    let side = height.min(width) as f64;
    let opening: Vec<f32> = (0..height * width)
        .map(|at| {
            let radius = ((at % width) as f64 - x).hypot((at / width) as f64 - y);
            let t = ((0.5 * side - radius) / (SOFT_EDGE * side)).clamp(0.0, 1.0);
            (t * t * (3.0 - 2.0 * t)) as f32
        })
        .collect();
    let mut mean = vec![0.0; channels];
    let total: f32 = opening.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    for (pixel, a) in image.data().chunks_exact(channels).zip(&opening) {
        mean.iter_mut().zip(pixel).for_each(|(sum, v)| *sum += a * v / total);
    }
    let value = |(at, v): (usize, &f32)| opening[at / channels] * (v - mean[at % channels]);
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
    fn the_surround_has_the_mean_colour_at_any_angle() {
        let padding = Padding { canvas: [48, 48], window: true };
        let turn = Similarity::new(1.2, FRAC_PI_4, [0.0; 2]).unwrap();
        let upright = padding.show(&picture(), &Similarity::IDENTITY).unwrap();
        let turned = padding.show(&picture(), &turn).unwrap();
        let (_, mean) = masked(&picture()).unwrap();
        for corner in [0, 47, 48 * 47, 48 * 48 - 1] {
            for image in [&upright, &turned] {
                let pixel = &image.data()[3 * corner..][..3];
                assert!(pixel.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
        // The middle is the picture itself.
        let middle = 3 * (24 * 48 + 24);
        let own = &picture().data()[3 * (16 * 32 + 16)..][..3].to_vec();
        let shown = &upright.data()[middle..][..3];
        assert!(shown.iter().zip(own).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn a_quarter_turn_moves_pixels_and_nothing_else() {
        let padding = Padding { canvas: [40, 40], window: true };
        let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        let upright = padding.show(&picture(), &Similarity::IDENTITY).unwrap();
        let turned = padding.show(&picture(), &quarter).unwrap();
        for (y, x) in (0..40).flat_map(|y| (0..40).map(move |x| (y, x))) {
            let (from, to) = (3 * (y * 40 + x), 3 * (x * 40 + 39 - y));
            assert_eq!(upright.data()[from..from + 3], turned.data()[to..to + 3]);
        }
    }
}
