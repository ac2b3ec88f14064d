//! An image in memory: channels last, f32.

use crate::error::{MathError, Result};
use crate::shape::element_count;

/// An image `[height, width, channels]`, channels last, values usually in 0..1.
///
/// ```
/// use sren_math::Image;
///
/// # fn main() -> sren_math::Result<()> {
/// let image = Image::new(1, 2, 3, vec![1.0, 0.0, 0.0, 0.5, 0.5, 0.5])?;
/// assert_eq!(image.centre(), [0.5, 0.0]);
/// assert_eq!(image.luminance(), [0.299, 0.5]);
/// let error = Image::new(1, 2, 3, vec![0.0; 5]).unwrap_err();
/// assert_eq!(error.to_string(), "Image: expected 6 values for 1 x 2 x 3, got 5");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    height: usize,
    width: usize,
    channels: usize,
    data: Vec<f32>,
}

impl Image {
    /// An image from its values, row by row, channels last. Sizes are at least 1, values finite.
    pub fn new(height: usize, width: usize, channels: usize, data: Vec<f32>) -> Result<Self> {
        if height == 0 || width == 0 || channels == 0 {
            return Err(MathError::new(
                "Image",
                "height, width and channels of at least 1",
                format!("{height} x {width} x {channels}"),
            ));
        }
        let expected = element_count("Image", &[height, width, channels])?;
        if data.len() != expected {
            return Err(MathError::new(
                "Image",
                format!("{expected} values for {height} x {width} x {channels}"),
                format!("{}", data.len()),
            ));
        }
        if let Some(i) = data.iter().position(|v| !v.is_finite()) {
            let (row, column) = (i / channels / width, i / channels % width);
            return Err(MathError::new(
                "Image",
                "finite values",
                format!("{} at row {row}, column {column}", data[i]),
            ));
        }
        Ok(Self { height, width, channels, data })
    }

    /// An image whose parts are known to be valid.
    pub(crate) fn from_parts(height: usize, width: usize, channels: usize, data: Vec<f32>) -> Self {
        debug_assert_eq!(data.len(), height * width * channels);
        Self { height, width, channels, data }
    }

    /// A black image.
    pub fn zeros(height: usize, width: usize, channels: usize) -> Result<Self> {
        let len = element_count("Image::zeros", &[height, width, channels])?;
        Self::new(height, width, channels, vec![0.0; len])
    }

    /// The one-channel image with value `f(x, y)` at every pixel centre.
    pub fn from_fn(height: usize, width: usize, f: impl Fn(f64, f64) -> f64) -> Result<Self> {
        element_count("Image::from_fn", &[height, width])?;
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x as f64, y as f64)));
        Self::new(height, width, 1, pixels.map(|(x, y)| f(x, y) as f32).collect())
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The values, `[height, width, channels]`.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The centre of the image.
    pub fn centre(&self) -> [f64; 2] {
        [0.5 * (self.width as f64 - 1.0), 0.5 * (self.height as f64 - 1.0)]
    }

    /// This image centred on a black canvas that is at least as large.
    pub fn padded(&self, height: usize, width: usize) -> Result<Self> {
        if height < self.height || width < self.width {
            return Err(MathError::new(
                "Image::padded",
                format!("a canvas of at least {} x {}", self.height, self.width),
                format!("{height} x {width}"),
            ));
        }
        let mut canvas = Self::zeros(height, width, self.channels)?;
        let (top, left) = ((height - self.height) / 2, (width - self.width) / 2);
        let row = self.width * self.channels;
        for (y, line) in self.data.chunks_exact(row).enumerate() {
            let start = ((top + y) * width + left) * self.channels;
            canvas.data[start..start + row].copy_from_slice(line);
        }
        Ok(canvas)
    }

    /// The input of the pose estimator, `[height, width]`: see [`luminance`].
    pub fn luminance(&self) -> Vec<f32> {
        luminance(&self.data, self.channels)
    }
}

/// The luminance of channels-last pixels: for 3 channels the weights of ITU-R BT.601 on red,
/// green and blue, for 4 the same without alpha, for any other number the mean. Empty for 0
/// channels.
pub fn luminance(pixels: &[f32], channels: usize) -> Vec<f32> {
    const RGB: [f32; 3] = [0.299, 0.587, 0.114];
    match channels {
        0 => Vec::new(),
        1 => pixels.to_vec(),
        3 | 4 => pixels
            .chunks_exact(channels)
            .map(|p| p.iter().zip(RGB).map(|(v, w)| v * w).sum())
            .collect(),
        _ => {
            pixels.chunks_exact(channels).map(|p| p.iter().sum::<f32>() / channels as f32).collect()
        }
    }
}

/// The mean of the outermost pixels of a one-channel image. The pose estimator takes it as the value
/// outside the image, so that the image border is not an edge.
pub fn border_mean(grey: &[f32], height: usize, width: usize) -> f64 {
    let width = width.max(1);
    let inner = |i: &usize| {
        let (y, x) = (i / width, i % width);
        y > 0 && x > 0 && y + 1 < height && x + 1 < width
    };
    let border = (0..grey.len()).filter(|i| !inner(i));
    let (sum, count) = border.fold((0.0, 0usize), |(sum, n), i| (sum + f64::from(grey[i]), n + 1));
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_wrong_sizes_and_values() {
        assert!(Image::new(0, 3, 1, vec![]).is_err());
        assert!(Image::new(2, 2, 1, vec![0.0; 3]).is_err());
        let error = Image::new(1, 2, 1, vec![0.0, f32::NAN]).unwrap_err();
        assert_eq!(error.to_string(), "Image: expected finite values, got NaN at row 0, column 1");
    }

    #[test]
    fn the_border_is_one_pixel_wide() {
        let grey = [1.0, 2.0, 3.0, 4.0, 90.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(border_mean(&grey, 3, 3), 5.0);
        assert_eq!(border_mean(&grey[..4], 1, 4), 2.5);
        assert_eq!(border_mean(&grey[..4], 0, 0), 2.5);
        assert!(luminance(&grey, 0).is_empty());
    }

    #[test]
    fn padding_keeps_the_centre() {
        let image = Image::from_fn(2, 2, |x, y| 1.0 + x + 2.0 * y).unwrap();
        let canvas = image.padded(4, 4).unwrap();
        assert_eq!(&canvas.data()[4..12], [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0]);
        assert!(image.padded(1, 4).is_err());
    }
}
