//! Images of any size and number of channels brought to one: a square, the aspect ratio preserved.

use sren_math::{Image, MathError, element_count};

use crate::resize::resize;

/// Largest side of the square.
const MAX_SIDE: usize = 16_384;

/// The square that images are brought to.
///
/// ```
/// use sren_data::Letterbox;
/// use sren_math::Image;
///
/// let letterbox = Letterbox { side: 64, channels: 3, mean_colour: true };
/// let grey = Image::zeros(480, 640, 1)?;
/// let square = letterbox.apply(&grey)?;
/// assert_eq!((square.height(), square.width(), square.channels()), (64, 64, 3));
/// # Ok::<(), sren_math::MathError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letterbox {
    /// Side of the square, and the new length of the image's longer side.
    pub side: usize,
    /// 1 for grey (luminance), 3 for colour (grey is repeated).
    pub channels: usize,
    /// Whether the bars have the image's mean colour; otherwise they are black.
    pub mean_colour: bool,
}

impl Letterbox {
    /// The image in the middle of the square.
    ///
    /// Returns an error if the side is not in 1..=16384, or if the image has neither 1 nor
    /// `channels` channels while `channels` is not 1.
    pub fn apply(&self, image: &Image) -> Result<Image, MathError> {
        if !(1..=MAX_SIDE).contains(&self.side) {
            let expected = format!("a side of 1 to {MAX_SIDE}");
            return Err(MathError::new("Letterbox", expected, self.side.to_string()));
        }
        let image = in_channels(image, self.channels)?;
        let longer = image.height().max(image.width()) as f64;
        let size = |own: usize| {
            ((own as f64 * self.side as f64 / longer).round() as usize).clamp(1, self.side)
        };
        let (height, width) = (size(image.height()), size(image.width()));
        let small = if (height, width) == (image.height(), image.width()) {
            image
        } else {
            resize(&image, height, width)?
        };
        if height == width {
            return Ok(small);
        }
        let mut mean = vec![0.0; self.channels];
        if self.mean_colour {
            let share = 1.0 / (height * width) as f32;
            for pixel in small.data().chunks_exact(self.channels) {
                mean.iter_mut().zip(pixel).for_each(|(sum, v)| *sum += share * v);
            }
        }
        let mut data = mean.repeat(self.side * self.side);
        let (top, left) = ((self.side - height) / 2, (self.side - width) / 2);
        let row = width * self.channels;
        for (y, line) in small.data().chunks_exact(row).enumerate() {
            let start = ((top + y) * self.side + left) * self.channels;
            data[start..start + row].copy_from_slice(line);
        }
        Image::new(self.side, self.side, self.channels, data)
    }

    /// [`apply`](Self::apply), as bytes.
    pub fn bytes(&self, image: &Image) -> Result<Vec<u8>, MathError> {
        let byte = |v: &f32| (v.clamp(0.0, 1.0) * 255.0).round() as u8;
        Ok(self.apply(image)?.data().iter().map(byte).collect())
    }
}

/// The image in `channels` channels: colour becomes luminance if `channels` is 1, grey is repeated
/// if it is more.
pub fn in_channels(image: &Image, channels: usize) -> Result<Image, MathError> {
    let (height, width) = (image.height(), image.width());
    match image.channels() {
        own if own == channels => Ok(image.clone()),
        _ if channels == 1 => Image::new(height, width, 1, image.luminance()),
        1 if element_count("letterbox", &[height, width, channels])
            .ok()
            .is_some_and(|len| len > 0) =>
        {
            let repeat = |v: &f32| std::iter::repeat_n(*v, channels);
            Image::new(height, width, channels, image.data().iter().flat_map(repeat).collect())
        }
        own => {
            let expected = format!("images of 1 or {channels} channels");
            Err(MathError::new("in_channels", expected, own.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aspect_ratio_is_preserved_and_bars_have_the_mean_colour() {
        let wide = Image::from_fn(10, 40, |x, _| if x < 20.0 { 0.2 } else { 0.6 }).unwrap();
        let letterbox = Letterbox { side: 16, channels: 3, mean_colour: true };
        let square = letterbox.apply(&wide).unwrap();
        assert_eq!((square.height(), square.width(), square.channels()), (16, 16, 3));
        let at = |y: usize, x: usize| square.data()[3 * (y * 16 + x)];
        assert!((at(0, 0) - 0.4).abs() < 1e-3 && (at(15, 15) - 0.4).abs() < 1e-3);
        assert!((at(8, 1) - 0.2).abs() < 1e-3 && (at(8, 14) - 0.6).abs() < 1e-3);
        let black = Letterbox { mean_colour: false, channels: 1, ..letterbox };
        assert_eq!(black.apply(&wide).unwrap().data()[0], 0.0);
        assert_eq!(black.bytes(&wide).unwrap().len(), 256);
    }

    #[test]
    fn any_shape_of_image_fits_and_wrong_squares_give_an_error() {
        for (height, width) in [(1, 1), (1, 500), (500, 1), (3, 7), (64, 64)] {
            let image = Image::zeros(height, width, 3).unwrap();
            let square =
                Letterbox { side: 8, channels: 1, mean_colour: true }.apply(&image).unwrap();
            assert_eq!(square.data().len(), 64);
        }
        let grey = Image::zeros(2, 3, 1).unwrap();
        for (side, channels) in [(0, 1), (1 << 40, 1), (usize::MAX, 3), (8, 0), (8, usize::MAX)] {
            assert!(Letterbox { side, channels, mean_colour: true }.apply(&grey).is_err());
        }
    }
}
