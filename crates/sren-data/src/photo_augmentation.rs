//! Augmentation of photographs: random flips, crops and colour jitter, drawn again in every epoch.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use sren_math::{About, Image, Interpolation, Similarity, warp};

use crate::error::{DataError, Result};
use crate::random_stream::{PHOTO_STREAMS, generator};

/// Random flips, crops and colour jitter. Photographs stay upright.
///
/// ```
/// use sren_data::PhotoAugmentation;
/// use sren_math::Image;
///
/// let augmentation = PhotoAugmentation::new(true, 0.7, 0.3)?;
/// let image = Image::zeros(64, 64, 3)?;
/// let augmented = augmentation.apply(image, 1, 0, 42)?; // seed, epoch, index of the image
/// assert_eq!((augmented.height(), augmented.width()), (64, 64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PhotoAugmentation {
    /// Whether photographs are flipped left to right with probability 1/2.
    pub flip: bool,
    /// Smallest side of the crop, as a fraction of the image. The crop is enlarged to full size.
    pub crop: f64,
    /// Largest relative change of brightness, contrast and saturation.
    pub colour: f64,
}

impl PhotoAugmentation {
    /// Checked: see [`check`](Self::check).
    pub fn new(flip: bool, crop: f64, colour: f64) -> Result<Self> {
        let augmentation = Self { flip, crop, colour };
        augmentation.check()?;
        Ok(augmentation)
    }

    /// Returns an error unless `crop` is in 0.1..=1 and `colour` in 0..1.
    pub fn check(&self) -> Result<()> {
        if !((0.1..=1.0).contains(&self.crop) && (0.0..1.0).contains(&self.colour)) {
            let expected = "a crop in 0.1..=1 and a colour in 0..1";
            let got = format!("{} and {}", self.crop, self.colour);
            return Err(DataError::format("augmentation of photographs", expected, got));
        }
        Ok(())
    }

    /// The augmented image `index` in `epoch`.
    pub fn apply(&self, image: Image, seed: u64, epoch: usize, index: usize) -> Result<Image> {
        let mut random = generator(seed, epoch, PHOTO_STREAMS + index as u64);
        let mut draw = |low: f64, high: f64| low + (high - low) * random.random_range(0.0..=1.0);
        let flip = draw(0.0, 1.0) < 0.5;
        let side = draw(self.crop, 1.0);
        let slack = 0.5 * (1.0 - side);
        let shift = [draw(-slack, slack), draw(-slack, slack)];
        let [brightness, contrast, saturation] =
            [(); 3].map(|()| draw(1.0 - self.colour, 1.0 + self.colour) as f32);
        let fail = |e: sren_math::MathError| {
            DataError::format("augmentation of photographs", e.expected, e.got)
        };
        let (height, width, channels) = (image.height(), image.width(), image.channels());
        let mut image = image;
        if side < 1.0 {
            let reach = |size: usize| (size - 1) as f64 / side;
            let by = [shift[0] * reach(width), shift[1] * reach(height)];
            let crop = Similarity::new(1.0 / side, 0.0, by).map_err(fail)?;
            image = warp(&image, &crop, About::Centre, Interpolation::Bilinear);
        }
        let mut data = image.data().to_vec();
        if self.flip && flip {
            for row in data.chunks_exact_mut(width * channels) {
                for x in 0..width / 2 {
                    for c in 0..channels {
                        row.swap(x * channels + c, (width - 1 - x) * channels + c);
                    }
                }
            }
        }
        if self.colour > 0.0 {
            let middle = data.iter().sum::<f32>() / data.len().max(1) as f32;
            for pixel in data.chunks_exact_mut(channels) {
                let grey = pixel.iter().sum::<f32>() / channels as f32;
                for v in pixel {
                    let vivid = grey + saturation * (*v - grey);
                    *v = (brightness * (middle + contrast * (vivid - middle))).clamp(0.0, 1.0);
                }
            }
        }
        Image::new(height, width, channels, data).map_err(fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Image {
        let data = (0..24 * 24 * 3).map(|i| 0.2 + 0.6 * ((i * 31) % 97) as f32 / 97.0).collect();
        Image::new(24, 24, 3, data).unwrap()
    }

    #[test]
    fn draws_follow_from_seed_epoch_and_index_alone() {
        let augmentation = PhotoAugmentation { flip: true, crop: 0.7, colour: 0.3 };
        let make = |seed, epoch, index| augmentation.apply(picture(), seed, epoch, index).unwrap();
        let one = make(1, 2, 3);
        assert_eq!(one, make(1, 2, 3));
        for other in [make(2, 2, 3), make(1, 3, 3), make(1, 2, 4)] {
            assert_ne!(one, other);
        }
        // A crop has no pixels from beyond the image.
        assert!((0..40).all(|i| make(1, 1, i).data().iter().all(|v| *v > 0.01)));
    }

    #[test]
    fn options_that_are_off_do_nothing_and_impossible_ones_give_an_error() {
        let off = PhotoAugmentation { flip: false, crop: 1.0, colour: 0.0 };
        assert_eq!(off.apply(picture(), 1, 1, 1).unwrap(), picture());
        let flip = PhotoAugmentation { flip: true, ..off };
        let flipped = (0..100).filter(|i| flip.apply(picture(), 1, 1, *i).unwrap() != picture());
        assert!((30..70).contains(&flipped.count()));
        for (crop, colour) in [(0.0, 0.1), (1.1, 0.1), (f64::NAN, 0.1), (0.5, 1.0), (0.5, -0.1)] {
            assert!(PhotoAugmentation::new(true, crop, colour).is_err());
        }
    }
}
