//! Random transforms of training images and frames, and random positions.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use sren_math::{Pose, Similarity};

use crate::error::{DataError, Result};
use crate::random_stream::{JITTER_STREAMS, POSITION_STREAMS, generator};

/// Random rotations, scalings and translations of training images, about the centre.
///
/// ```
/// use sren_data::Augmentation;
///
/// let augmentation = Augmentation { shift: 2, ..Augmentation::PAPER };
/// let transform = augmentation.draw(1, 0, 42)?; // seed, epoch, index of the image
/// assert!(transform.angle().abs() <= augmentation.angle);
/// assert_eq!(transform, augmentation.draw(1, 0, 42)?);
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augmentation {
    /// Largest rotation in either direction, in radians.
    pub angle: f64,
    /// Smallest and largest scale.
    pub scale: [f64; 2],
    /// Largest translation along each axis, in pixels. Drawn in steps of half a pixel, so that
    /// half of them soften the image as a rotation does.
    pub shift: u32,
}

impl Augmentation {
    /// That of the paper's SREN+: rotations up to 30 degrees, scales 0.8 to 1.2.
    pub const PAPER: Self = Self { angle: std::f64::consts::PI / 6.0, scale: [0.8, 1.2], shift: 0 };
    /// That of the test set SRT: any rotation, scales 1 to 2, translations up to 10 pixels.
    pub const FULL: Self = Self { angle: std::f64::consts::PI, scale: [1.0, 2.0], shift: 10 };
    /// No augmentation.
    pub const NONE: Self = Self { angle: 0.0, scale: [1.0, 1.0], shift: 0 };

    /// The transform of image `index` in `epoch`. Returns an error if the angle is negative or not
    /// finite, or the scales are not positive and ascending.
    pub fn draw(&self, seed: u64, epoch: usize, index: usize) -> Result<Similarity> {
        let [low, high] = self.scale;
        let possible = self.angle.is_finite() && self.angle >= 0.0;
        if !(possible && 0.0 < low && low <= high && high.is_finite()) {
            let expected = "an angle of at least 0 and scales above 0, ascending";
            let got = format!("{} and {:?}", self.angle, self.scale);
            return Err(DataError::format("augmentation", expected, got));
        }
        let mut random = generator(seed, epoch, index as u64);
        let angle = random.random_range(-self.angle..=self.angle);
        let scale = random.random_range(low..=high);
        let reach = 2 * i64::from(self.shift);
        let shift = [(); 2].map(|()| random.random_range(-reach..=reach) as f64 / 2.0);
        Similarity::new(scale, angle, shift)
            .map_err(|e| DataError::format("augmentation", e.expected, e.got))
    }
}

/// Random rotations and scalings of all frames of an image, which the network learns to tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoseJitter {
    /// Largest rotation in either direction, in radians.
    pub angle: f64,
    /// Largest change of ln scale in either direction.
    pub ln_scale: f64,
}

impl PoseJitter {
    /// The pose that the frames of image `index` are composed with in `epoch`.
    ///
    /// # Panics
    /// If the angle or `ln_scale` is negative or not finite.
    pub fn draw(&self, seed: u64, epoch: usize, index: usize) -> Pose {
        let mut random = generator(seed, epoch, JITTER_STREAMS + index as u64);
        let angle = random.random_range(-self.angle..=self.angle);
        let ln_scale = random.random_range(-self.ln_scale..=self.ln_scale);
        Pose { scale: ln_scale.exp(), angle }
    }
}

/// `count` distinct elements of `among`, or all if there are fewer, drawn for image `index` in
/// `epoch`.
pub fn draw_positions(
    mut among: Vec<usize>,
    count: usize,
    seed: u64,
    epoch: usize,
    index: usize,
) -> Vec<usize> {
    let mut random = generator(seed, epoch, POSITION_STREAMS + index as u64);
    for first in 0..count.min(among.len()) {
        let other = random.random_range(first..among.len());
        among.swap(first, other);
    }
    among.truncate(count);
    among
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn augmentation_stays_in_its_range_and_differs_by_epoch() {
        let augmentation = Augmentation::PAPER;
        for index in 0..500 {
            let transform = augmentation.draw(1, 3, index).unwrap();
            assert!(transform.angle().abs() <= 30.1f64.to_radians());
            assert!((0.8..=1.2).contains(&transform.scale()));
            assert_ne!(transform, augmentation.draw(1, 4, index).unwrap());
        }
    }

    #[test]
    fn impossible_ranges_give_an_error() {
        for (angle, scale) in [
            (-0.1, [1.0, 1.0]),
            (f64::NAN, [1.0, 1.0]),
            (f64::INFINITY, [1.0, 1.0]),
            (0.1, [1.2, 0.8]),
            (0.1, [0.0, 1.0]),
            (0.1, [1.0, f64::INFINITY]),
            (0.1, [f64::NAN, 1.0]),
        ] {
            assert!(Augmentation { angle, scale, shift: 1 }.draw(1, 1, 1).is_err());
        }
    }
}
