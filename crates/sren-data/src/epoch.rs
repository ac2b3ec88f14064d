//! What training draws: the validation split, the order of an epoch, the augmentation.
//!
//! All draws follow from the seed and what they are for, none from what was drawn before: training
//! may stop and go on anywhere.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use sren_math::{Pose, Similarity};

use crate::error::{DataError, Result};

/// Streams of one seed, so that what is drawn for one purpose tells nothing of another.
const SPLIT_STREAM: u64 = u64::MAX;
const ORDER_STREAM: u64 = u64::MAX - 1;
/// The first of those of pose jitter; the augmentation's begin at 0.
const JITTER_STREAMS: u64 = 1 << 63;
/// The first of those of positions
const POSITION_STREAMS: u64 = 1 << 60;
/// and of those of photographs
pub(crate) const PHOTOGRAPH_STREAMS: u64 = 1 << 62;
/// and of the classes of a folder.
pub(crate) const FOLDER_STREAMS: u64 = 1 << 61;

/// Random turns, scalings and shifts of training images, about the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augmentation {
    /// Greatest turn to either side, in radians.
    pub angle: f64,
    /// Smallest and largest scale.
    pub scale: [f64; 2],
    /// Greatest shift along each axis, in pixels. Shifts are drawn in steps of half a pixel: half
    /// of those along an axis soften the image as turning does.
    pub shift: u32,
}

impl Augmentation {
    /// That of the paper's SREN+: 30 degrees to either side, scales 0.8 to 1.2.
    pub const PAPER: Self = Self { angle: std::f64::consts::PI / 6.0, scale: [0.8, 1.2], shift: 0 };
    /// Images as they are.
    pub const NONE: Self = Self { angle: 0.0, scale: [1.0, 1.0], shift: 0 };

    /// The transform of image `index` in `epoch`.
    pub fn draw(&self, seed: u64, epoch: usize, index: usize) -> Result<Similarity> {
        let mut random = generator(seed, epoch, index as u64);
        let angle = random.random_range(-self.angle..=self.angle);
        let scale = random.random_range(self.scale[0]..=self.scale[1]);
        let reach = 2 * i64::from(self.shift);
        let shift = [(); 2].map(|()| random.random_range(-reach..=reach) as f64 / 2.0);
        Similarity::new(scale, angle, shift)
            .map_err(|e| DataError::format("augmentation", e.expected, e.got))
    }
}

/// Random turns and scalings of all frames of an image, which a network shall bear.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoseJitter {
    /// Greatest turn to either side, in radians.
    pub angle: f64,
    /// Greatest change of ln scale to either side.
    pub ln_scale: f64,
}

impl PoseJitter {
    /// What the frames of image `index` are composed with in `epoch`.
    pub fn draw(&self, seed: u64, epoch: usize, index: usize) -> Pose {
        let mut random = generator(seed, epoch, JITTER_STREAMS + index as u64);
        let angle = random.random_range(-self.angle..=self.angle);
        let ln_scale = random.random_range(-self.ln_scale..=self.ln_scale);
        Pose { scale: ln_scale.exp(), angle }
    }
}

/// `count` different ones of `among`, or all if they are no more, drawn for image `index` in `epoch`.
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

/// Training images and, held out, validation images, as indices of the training set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSplit {
    /// Those to learn from.
    pub training: Vec<usize>,
    /// Those that every choice is made on.
    pub validation: Vec<usize>,
}

impl TrainingSplit {
    /// `training` and `validation` different images of `total`, drawn by `seed`.
    pub fn new(total: usize, training: usize, validation: usize, seed: u64) -> Result<Self> {
        Self::check(total, training, validation)?;
        let mut all: Vec<usize> = (0..total).collect();
        shuffle(&mut all, &mut generator(seed, 0, SPLIT_STREAM));
        let held_out = all.split_off(total - validation);
        all.truncate(training);
        Ok(Self { training: all, validation: held_out })
    }

    /// Refuses a split that `total` images do not have.
    pub fn check(total: usize, training: usize, validation: usize) -> Result<()> {
        if training == 0 || validation == 0 || training.saturating_add(validation) > total {
            let expected = format!("at least 1 image each to train and validate, together {total}");
            let got = format!("{training} and {validation}");
            return Err(DataError::format("training split", expected, got));
        }
        Ok(())
    }

    /// The training images in the order of `epoch`.
    pub fn order(&self, seed: u64, epoch: usize) -> Vec<usize> {
        let mut order = self.training.clone();
        shuffle(&mut order, &mut generator(seed, epoch, ORDER_STREAM));
        order
    }
}

pub(crate) fn generator(seed: u64, epoch: usize, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed.rotate_left(32) ^ epoch as u64);
    random.set_stream(stream);
    random
}

/// Fisher and Yates.
pub(crate) fn shuffle(items: &mut [usize], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.random_range(0..=last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_disjoint_and_every_epoch_mixes_anew() {
        let split = TrainingSplit::new(100, 80, 20, 7).unwrap();
        let mut all = [split.training.clone(), split.validation.clone()].concat();
        all.sort();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        let (first, second) = (split.order(7, 1), split.order(7, 2));
        assert!(first != second && first == split.order(7, 1));
        let sorted = |mut v: Vec<usize>| {
            v.sort();
            v
        };
        assert_eq!(sorted(first), sorted(second));
        assert_ne!(split, TrainingSplit::new(100, 80, 20, 8).unwrap());
        assert_eq!(TrainingSplit::new(100, 30, 20, 7).unwrap().training.len(), 30);
        for (training, validation) in [(0, 1), (1, 0), (81, 20), (usize::MAX, 1)] {
            assert!(TrainingSplit::new(100, training, validation, 7).is_err());
        }
    }

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
}
