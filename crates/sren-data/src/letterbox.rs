//! Images of any size and kind brought to one: a square with the aspect kept.

use sren_math::{Image, MathError, resize};

/// What an image is brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letterbox {
    /// Side of the square: the longer side of the image becomes as long, the shorter follows.
    pub side: usize,
    /// 1 for grey (luminance), 3 for colour (grey is repeated).
    pub channels: usize,
    /// Whether the rest of the square has the image's mean colour; else it is black.
    pub mean_colour: bool,
}

impl Letterbox {
    /// The image in the middle of the square.
    pub fn apply(&self, image: &Image) -> Result<Image, MathError> {
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
        let (top, left) = ((self.side - height) / 2, (self.side - width) / 2);
        let mut data = mean.repeat(self.side * self.side);
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

/// The image in `channels` channels: colour as luminance where one is wanted, grey in all of them
/// where more are.
pub fn in_channels(image: &Image, channels: usize) -> Result<Image, MathError> {
    let (height, width) = (image.height(), image.width());
    match image.channels() {
        own if own == channels => Ok(image.clone()),
        _ if channels == 1 => Image::new(height, width, 1, image.luminance()),
        1 => {
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
    fn the_aspect_is_kept_and_the_rest_has_the_mean_colour() {
        let wide = Image::from_fn(10, 40, |x, _| if x < 20.0 { 0.2 } else { 0.6 }).unwrap();
        let fit = Letterbox { side: 16, channels: 3, mean_colour: true };
        let square = fit.apply(&wide).unwrap();
        assert_eq!((square.height(), square.width(), square.channels()), (16, 16, 3));
        let at = |y: usize, x: usize| square.data()[3 * (y * 16 + x)];
        assert!((at(0, 0) - 0.4).abs() < 1e-3 && (at(15, 15) - 0.4).abs() < 1e-3);
        assert!((at(8, 1) - 0.2).abs() < 1e-3 && (at(8, 14) - 0.6).abs() < 1e-3);
        let black = Letterbox { mean_colour: false, channels: 1, ..fit };
        assert_eq!(black.apply(&wide).unwrap().data()[0], 0.0);
        assert_eq!(black.bytes(&wide).unwrap().len(), 256);
    }

    #[test]
    fn any_shape_of_image_fits() {
        for (height, width) in [(1, 1), (1, 500), (500, 1), (3, 7), (64, 64)] {
            let image = Image::zeros(height, width, 3).unwrap();
            let square =
                Letterbox { side: 8, channels: 1, mean_colour: true }.apply(&image).unwrap();
            assert_eq!(square.data().len(), 64);
        }
    }
}
