//! Test sets. The paper's: digits on a canvas of 56 x 56, transformed about its centre, bilinear.
//!
//! One seed for all: an image has the same angle in R and SRT and the same scale in S and SRT.

use std::f64::consts::{PI, TAU};
use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sren_math::Similarity;

use crate::error::{DataError, Result};

/// Seed of the transforms of every test set.
const SEED: u64 = 56;
/// Range of scales in S and SRT.
const SCALES: Range<f64> = 1.0..2.0;
/// Largest translation in SRT along each axis, in pixels.
const SHIFT: f64 = 10.0;
/// affNIST's ranges, without its shear: largest angle, scales, and largest translation along each
/// axis.
const AFFNIST: (f64, Range<f64>, f64) = (PI / 9.0, 0.8..1.2, 8.0);

/// How the test images are transformed.
///
/// ```
/// use sren_data::TestSet;
///
/// let set: TestSet = "srt".parse()?;
/// let transform = set.transform(7)?; // the same on every call
/// assert!((1.0..2.0).contains(&transform.scale()));
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TestSet {
    /// Not transformed.
    Upright,
    /// R: rotated by any angle.
    Rotated,
    /// S: scaled by 1 to 2.
    Scaled,
    /// SRT: scaled, rotated, then translated by up to 10 pixels along each axis.
    ScaledRotatedMoved,
    /// Out of distribution: scaled and rotated, for photographs.
    ScaledRotated,
    /// By the ranges of affNIST, without shear: rotated by up to 20 degrees, scaled by 0.8 to 1.2,
    /// translated by up to 8 pixels along each axis.
    AffNist,
}

impl TestSet {
    /// The test sets of the paper's Table 1, in its order.
    pub const ALL: [Self; 4] =
        [Self::Upright, Self::Rotated, Self::Scaled, Self::ScaledRotatedMoved];

    /// The test sets of photographs.
    pub const PHOTOGRAPHS: [Self; 2] = [Self::Upright, Self::ScaledRotated];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upright => "upright",
            Self::Rotated => "r",
            Self::Scaled => "s",
            Self::ScaledRotatedMoved => "srt",
            Self::ScaledRotated => "ood",
            Self::AffNist => "aff",
        }
    }

    /// The transform of image number `index`, about the centre of the canvas.
    pub fn transform(self, index: usize) -> Result<Similarity> {
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        random.set_stream(index as u64);
        let angle = random.random_range(0.0..TAU);
        let scale = random.random_range(SCALES);
        let shift = [random.random_range(-SHIFT..SHIFT), random.random_range(-SHIFT..SHIFT)];
        let transform = match self {
            Self::Upright => Ok(Similarity::IDENTITY),
            Self::Rotated => Similarity::new(1.0, angle, [0.0; 2]),
            Self::Scaled => Similarity::new(scale, 0.0, [0.0; 2]),
            Self::ScaledRotatedMoved => Similarity::new(scale, angle, shift),
            Self::ScaledRotated => Similarity::new(scale, angle, [0.0; 2]),
            Self::AffNist => {
                let (angle, scales, shift) = AFFNIST;
                let angle = random.random_range(-angle..angle);
                let scale = random.random_range(scales);
                let shift = [(); 2].map(|()| random.random_range(-shift..shift));
                Similarity::new(scale, angle, shift)
            }
        };
        transform.map_err(|e| DataError::format(self.name(), e.expected, e.got))
    }
}

impl std::str::FromStr for TestSet {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter().chain([Self::ScaledRotated, Self::AffNist]);
        all.find(|set| set.name() == name)
            .ok_or_else(|| DataError::format("test set", "upright, r, s, srt, ood or aff", name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_those_of_the_paper_and_never_change() {
        let mut quarters = [0; 4];
        for index in 0..1000 {
            let all = TestSet::ALL.map(|set| set.transform(index).unwrap());
            let [upright, rotated, scaled, srt] = all;
            assert_eq!(upright, Similarity::IDENTITY);
            assert_eq!((rotated.scale(), rotated.translation()), (1.0, [0.0; 2]));
            assert_eq!((scaled.angle(), scaled.translation()), (0.0, [0.0; 2]));
            assert_eq!((srt.angle(), srt.scale()), (rotated.angle(), scaled.scale()));
            assert!(SCALES.contains(&srt.scale()));
            assert!(srt.translation().iter().all(|t| t.abs() <= SHIFT));
            let aff = TestSet::AffNist.transform(index).unwrap();
            assert!(aff.angle().abs() <= PI / 9.0 && (0.8..1.2).contains(&aff.scale()));
            assert!(aff.translation().iter().all(|t| t.abs() <= 8.0));
            quarters[(rotated.angle().rem_euclid(TAU) / TAU * 4.0) as usize % 4] += 1;
            assert_eq!(srt, TestSet::ScaledRotatedMoved.transform(index).unwrap());
        }
        assert!(quarters.iter().all(|n| (200..300).contains(n)), "{quarters:?}");
    }

    #[test]
    fn names_are_read_back() {
        let others = TestSet::PHOTOGRAPHS.into_iter().chain([TestSet::AffNist]);
        for set in TestSet::ALL.into_iter().chain(others) {
            assert_eq!(set.name().parse::<TestSet>().unwrap(), set);
        }
        let error = "x".parse::<TestSet>().unwrap_err().to_string();
        assert_eq!(error, "test set: expected upright, r, s, srt, ood or aff, got x");
    }
}
