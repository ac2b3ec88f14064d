//! Training and validation images, and the order of an epoch.

use crate::error::{DataError, Result};
use crate::random_stream::{ORDER_STREAM, SPLIT_STREAM, generator, shuffle};

/// Training images and held-out validation images, as indices of the training set.
///
/// ```
/// let split = sren_data::TrainingSplit::new(60_000, 55_000, 5_000, 1)?;
/// assert_eq!(split.order(1, 3).len(), 55_000);
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrainingSplit {
    /// Images to train on.
    pub training: Vec<usize>,
    /// Held-out images, for model selection.
    pub validation: Vec<usize>,
}

impl TrainingSplit {
    /// `training` and `validation` distinct images of `total`, drawn by `seed`.
    pub fn new(total: usize, training: usize, validation: usize, seed: u64) -> Result<Self> {
        Self::check(total, training, validation)?;
        let mut all: Vec<usize> = (0..total).collect();
        shuffle(&mut all, &mut generator(seed, 0, SPLIT_STREAM));
        let held_out = all.split_off(total - validation);
        all.truncate(training);
        Ok(Self { training: all, validation: held_out })
    }

    /// Returns an error if either part is empty or both are more than `total` images.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_disjoint_and_every_epoch_is_shuffled_again() {
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
}
