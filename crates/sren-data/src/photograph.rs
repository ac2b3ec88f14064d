//! Augmentation of photographs: each is mirrored, cropped and recoloured anew in every epoch.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use sren_math::{About, Image, Interpolation, Similarity, warp};

use crate::epoch::{PHOTOGRAPH_STREAMS, generator};
use crate::error::{DataError, Result};

/// Random changes that leave a photograph what it is. It stays upright.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhotographAugmentation {
    /// Whether every second photograph is mirrored left to right.
    pub flip: bool,
    /// Least side of the square that is cut out and enlarged again, as a part of the whole.
    pub crop: f64,
    /// Greatest change of brightness, contrast and saturation, as a part of each.
    pub colour: f64,
}

impl PhotographAugmentation {
    /// Refuses what no photograph survives.
    pub fn check(&self) -> Result<()> {
        if !((0.1..=1.0).contains(&self.crop) && (0.0..1.0).contains(&self.colour)) {
            let expected = "a crop in 0.1..=1 and a colour in 0..1";
            let got = format!("{} and {}", self.crop, self.colour);
            return Err(DataError::format("augmentation of photographs", expected, got));
        }
        Ok(())
    }

    /// `image`, which is number `index`, as training sees it in `epoch`.
    pub fn apply(&self, image: Image, seed: u64, epoch: usize, index: usize) -> Result<Image> {
        let mut random = generator(seed, epoch, PHOTOGRAPH_STREAMS + index as u64);
        let mut draw = |low: f64, high: f64| low + (high - low) * random.random_range(0.0..=1.0);
        let flip = draw(0.0, 1.0) < 0.5;
        let side = draw(self.crop, 1.0);
        let slack = 0.5 * (1.0 - side);
        let shift = [draw(-slack, slack), draw(-slack, slack)];
        let [brightness, contrast, saturation] =
            [(); 3].map(|()| draw(1.0 - self.colour, 1.0 + self.colour) as f32);
        let refuse = |e: sren_math::MathError| {
            DataError::format("augmentation of photographs", e.expected, e.got)
        };
        let (height, width, channels) = (image.height(), image.width(), image.channels());
        let mut image = image;
        if side < 1.0 {
            let reach = |size: usize| (size - 1) as f64 / side;
            let by = [shift[0] * reach(width), shift[1] * reach(height)];
            let crop = Similarity::new(1.0 / side, 0.0, by).map_err(refuse)?;
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
        Image::new(height, width, channels, data).map_err(refuse)
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
        let augmentation = PhotographAugmentation { flip: true, crop: 0.7, colour: 0.3 };
        let make = |seed, epoch, index| augmentation.apply(picture(), seed, epoch, index).unwrap();
        let one = make(1, 2, 3);
        assert_eq!(one, make(1, 2, 3));
        for other in [make(2, 2, 3), make(1, 3, 3), make(1, 2, 4)] {
            assert_ne!(one, other);
        }
        // A crop shows nothing from beyond the image.
        assert!((0..40).all(|i| make(1, 1, i).data().iter().all(|v| *v > 0.01)));
    }

    #[test]
    fn what_is_switched_off_does_nothing_and_nonsense_is_refused() {
        let off = PhotographAugmentation { flip: false, crop: 1.0, colour: 0.0 };
        assert_eq!(off.apply(picture(), 1, 1, 1).unwrap(), picture());
        let flip = PhotographAugmentation { flip: true, ..off };
        let flipped = (0..100).filter(|i| flip.apply(picture(), 1, 1, *i).unwrap() != picture());
        assert!((30..70).contains(&flipped.count()));
        for (crop, colour) in [(0.0, 0.1), (1.1, 0.1), (f64::NAN, 0.1), (0.5, 1.0), (0.5, -0.1)] {
            assert!(PhotographAugmentation { flip: true, crop, colour }.check().is_err());
        }
    }
}
