//! Random rotations and scalings of test images, about the centre.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sren_math::Similarity;

use crate::error::{DataError, Result};

/// Seed of the transforms of every test set.
const SEED: u64 = 56;

/// Angles and scales, drawn uniformly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomTransform {
    /// Smallest and largest angle, in degrees.
    angles: [f64; 2],
    /// Smallest and largest scale.
    scales: [f64; 2],
}

impl RandomTransform {
    /// Angles in degrees and scales between the two values of each. Returns an error unless the
    /// values are finite and ascending and the scales above 0.
    pub fn new(angles: [f64; 2], scales: [f64; 2]) -> Result<Self> {
        let ordered = |[low, high]: [f64; 2]| low.is_finite() && high.is_finite() && low <= high;
        if !(ordered(angles) && ordered(scales) && scales[0] > 0.0) {
            let got = format!("angles {angles:?} and scales {scales:?}");
            let expected = "ranges from low to high, scales above 0";
            return Err(DataError::format("transform", expected, got));
        }
        Ok(Self { angles, scales })
    }

    /// The transform of image number `index`.
    pub fn draw(&self, index: usize) -> Result<Similarity> {
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        random.set_stream(index as u64);
        let mut part = || random.random_range(0.0..1.0);
        let between = |[low, high]: [f64; 2], part: f64| low + (high - low) * part;
        let angle = between(self.angles, part()).to_radians();
        let scale = between(self.scales, part());
        Similarity::new(scale, angle, [0.0; 2])
            .map_err(|e| DataError::format("transform", e.expected, e.got))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range_and_are_repeatable() {
        let transform = RandomTransform::new([-30.0, 30.0], [0.8, 1.2]).unwrap();
        for index in 0..300 {
            let drawn = transform.draw(index).unwrap();
            assert!(drawn.angle().abs() <= 30.01f64.to_radians());
            assert!((0.8..1.2).contains(&drawn.scale()));
            assert_eq!(drawn, transform.draw(index).unwrap());
        }
        let one = RandomTransform::new([90.0, 90.0], [1.0, 1.0]).unwrap();
        assert_eq!(one.draw(3).unwrap().angle(), 90f64.to_radians());
    }

    #[test]
    fn impossible_ranges_give_an_error() {
        for (angles, scales) in [
            ([1.0, 0.0], [1.0, 2.0]),
            ([0.0, 1.0], [0.0, 2.0]),
            ([0.0, f64::NAN], [1.0, 2.0]),
            ([0.0, 1.0], [1.0, f64::INFINITY]),
        ] {
            assert!(RandomTransform::new(angles, scales).is_err());
        }
    }
}
