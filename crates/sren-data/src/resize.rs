//! Resampling to another size.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::F32;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use sren_math::{Image, MathError, element_count};

/// Most values of a resized image.
const MAX_VALUES: usize = 1 << 30;

/// The image enlarged or reduced to `height x width`, bilinear. Each axis has its own factor; a
/// reduced one is averaged over the pixels that it covers (antialiased).
pub fn resize(image: &Image, height: usize, width: usize) -> Result<Image, MathError> {
    let fail =
        |got: String| MathError::new("resize", "sides of at least 1, at most 2^30 values", got);
    let side = |side: usize| match u32::try_from(side) {
        Ok(side) if side > 0 => Ok(side),
        _ => Err(fail(side.to_string())),
    };
    let (old_width, old_height) = (side(image.width())?, side(image.height())?);
    let (new_width, new_height) = (side(width)?, side(height)?);
    let channels = image.channels();
    let len =
        element_count("resize", &[height, width, channels]).ok().filter(|len| *len <= MAX_VALUES);
    let mut resized = vec![0.0; len.ok_or_else(|| fail(format!("{height} x {width}")))?];
    let bilinear = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    let mut resizer = Resizer::new();
    for channel in 0..channels {
        let values = image.data().iter().skip(channel).step_by(channels);
        let plane: Vec<F32> = values.map(|v| F32::new(*v)).collect();
        let from =
            TypedImageRef::new(old_width, old_height, &plane).map_err(|e| fail(e.to_string()))?;
        let mut to = TypedImage::new(new_width, new_height);
        resizer.resize_typed(&from, &mut to, &bilinear).map_err(|e| fail(e.to_string()))?;
        let values = resized.iter_mut().skip(channel).step_by(channels);
        values.zip(to.pixels()).for_each(|(v, pixel)| *v = pixel.0);
    }
    Image::new(height, width, channels, resized)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(height: usize, width: usize) -> Image {
        let data = (0..height * width * 3).map(|i| ((i * 7919) % 256) as f32 / 255.0).collect();
        Image::new(height, width, 3, data).unwrap()
    }

    /// One axis by its definition, in f64: a tent of width max(1, old / new), weights of sum 1.
    fn weights(old: usize, new: usize, at: usize) -> Vec<f64> {
        let factor = old as f64 / new as f64;
        let centre = (at as f64 + 0.5) * factor - 0.5;
        let tent = |j: usize| (1.0 - (j as f64 - centre).abs() / factor.max(1.0)).max(0.0);
        let sum: f64 = (0..old).map(tent).sum();
        (0..old).map(|j| tent(j) / sum).collect()
    }

    #[test]
    fn values_are_those_of_the_definition() {
        for ([h, w], [height, width]) in
            [([12, 16], [9, 12]), ([12, 16], [18, 24]), ([100, 75], [8, 6]), ([1, 5], [1, 1])]
        {
            let image = noise(h, w);
            let resized = resize(&image, height, width).unwrap();
            assert_eq!((resized.height(), resized.width()), (height, width));
            for (i, value) in resized.data().iter().enumerate() {
                let (y, x, c) = (i / 3 / width, i / 3 % width, i % 3);
                let (rows, columns) = (weights(h, height, y), weights(w, width, x));
                let term =
                    |j: usize| rows[j / w] * columns[j % w] * f64::from(image.data()[3 * j + c]);
                let expected: f64 = (0..h * w).map(term).sum();
                assert!((f64::from(*value) - expected).abs() < 2e-6, "{value} {expected}");
            }
        }
    }

    #[test]
    fn sides_of_zero_and_huge_ones_give_an_error() {
        for (height, width) in [(0, 4), (4, 0), (usize::MAX, 4), (1 << 31, 1 << 31), (1 << 30, 1)] {
            assert!(resize(&noise(4, 4), height, width).is_err());
        }
    }
}
