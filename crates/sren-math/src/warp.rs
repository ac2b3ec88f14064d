//! The action of Sim(2) on images: `(L_T f)(x) = f(T^-1 x)`, zero outside the image.

use crate::image::Image;
use crate::similarity::Similarity;

/// Interpolation between pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// Tent weights on the 2 x 2 nearest pixels.
    #[default]
    Bilinear,
    /// Keys' cubic convolution (a = -1/2) on the 4 x 4 nearest pixels.
    Cubic,
}

/// The fixed point of the rotation and scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum About {
    /// The centre of the image.
    #[default]
    Centre,
    /// Pixel (0, 0).
    Origin,
}

/// `L_T image`, on a canvas of the same size. Rotations by multiples of 90 degrees and translations
/// by whole pixels move pixels without interpolation.
///
/// ```
/// use std::f64::consts::FRAC_PI_2;
/// use sren_math::{About, Image, Interpolation, Similarity, warp};
///
/// # fn main() -> sren_math::Result<()> {
/// let image = Image::new(2, 2, 1, vec![1.0, 2.0, 3.0, 4.0])?;
/// let rotation = Similarity::new(1.0, FRAC_PI_2, [0.0, 0.0])?;
/// let rotated = warp(&image, &rotation, About::Centre, Interpolation::Bilinear);
/// assert_eq!(rotated.data(), [3.0, 1.0, 4.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn warp(image: &Image, transform: &Similarity, about: About, how: Interpolation) -> Image {
    let full = match about {
        About::Centre => transform.about(image.centre()),
        About::Origin => *transform,
    };
    let inverse = full.inverse();
    let (height, width, channels) = (image.height(), image.width(), image.channels());
    let mut data = vec![0.0; height * width * channels];
    for (i, pixel) in data.chunks_exact_mut(channels).enumerate() {
        let point = inverse.apply([(i % width) as f64, (i / width) as f64]);
        sample(image, point, how, pixel);
    }
    Image::from_parts(height, width, channels, data)
}

/// The image at any point, one value per channel.
pub fn sample(image: &Image, [x, y]: [f64; 2], how: Interpolation, out: &mut [f32]) {
    let (reach, kernel): (i64, fn(f64) -> f64) = match how {
        Interpolation::Bilinear => (1, tent),
        Interpolation::Cubic => (2, keys_cubic),
    };
    out.fill(0.0);
    let (width, height) = (image.width() as i64, image.height() as i64);
    if !(x > -2.0 && y > -2.0 && x < width as f64 + 2.0 && y < height as f64 + 2.0) {
        return;
    }
    let (left, top) = (x.floor() as i64 + 1 - reach, y.floor() as i64 + 1 - reach);
    for row in top.max(0)..(top + 2 * reach).min(height) {
        let wy = kernel(y - row as f64);
        for column in left.max(0)..(left + 2 * reach).min(width) {
            let weight = (wy * kernel(x - column as f64)) as f32;
            let start = (row * width + column) as usize * image.channels();
            for (o, v) in out.iter_mut().zip(&image.data()[start..][..image.channels()]) {
                *o += weight * v;
            }
        }
    }
}

fn tent(t: f64) -> f64 {
    (1.0 - t.abs()).max(0.0)
}

fn keys_cubic(t: f64) -> f64 {
    let t = t.abs();
    if t < 1.0 {
        (1.5 * t - 2.5) * t * t + 1.0
    } else if t < 2.0 {
        ((-0.5 * t + 2.5) * t - 4.0) * t + 2.0
    } else {
        0.0
    }
}
