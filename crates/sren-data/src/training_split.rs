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
        let mut all = shuffled(total, seed);
        let held_out = all.split_off(total - validation);
        all.truncate(training);
        Ok(Self { training: all, validation: held_out })
    }

    /// As [`new`](Self::new), where every class has its share of both parts and at least one
    /// training image. `labels` are those of all images.
    pub fn stratified(
        classes: &[String],
        labels: &[u32],
        training: usize,
        validation: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::check(labels.len(), training, validation)?;
        let counts = counts(classes, labels);
        let spare: Vec<usize> = counts.iter().map(|count| count.saturating_sub(1)).collect();
        let held_out = shares(validation, &counts, 0, &spare);
        if held_out.iter().sum::<usize>() < validation {
            let class = counts.iter().position(|count| *count < 2).unwrap_or(0);
            let expected = format!(
                "{validation} images to validate on, beside at least 1 of each class to train on"
            );
            let name = classes.get(class).map_or("", String::as_str);
            let got = format!("{} of class {name}", counts.get(class).unwrap_or(&0));
            return Err(DataError::format("training split", expected, got));
        }
        let mut left = held_out.clone();
        // The last images of each class, in the order in which they were drawn.
        let (mut validation, rest): (Vec<usize>, Vec<usize>) =
            shuffled(labels.len(), seed).into_iter().rev().partition(|index| {
                let left = &mut left[labels[*index] as usize];
                *left > 0 && {
                    *left -= 1;
                    true
                }
            });
        validation.reverse();
        let rest = rest.into_iter().rev().collect();
        Ok(Self { training: of_each_class(classes, labels, rest, training)?, validation })
    }

    /// The last `validation` images, which were set aside, and `training` of the others, drawn by
    /// `seed`, of every class its share.
    pub fn given(
        classes: &[String],
        labels: &[u32],
        training: usize,
        validation: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::check(labels.len(), training, validation)?;
        let first = labels.len() - validation;
        let drawn = shuffled(first, seed);
        let training = of_each_class(classes, labels, drawn, training)?;
        Ok(Self { training, validation: (first..labels.len()).collect() })
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

fn shuffled(total: usize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..total).collect();
    shuffle(&mut all, &mut generator(seed, 0, SPLIT_STREAM));
    all
}

/// The images of each class.
fn counts(classes: &[String], labels: &[u32]) -> Vec<usize> {
    let mut counts = vec![0; classes.len()];
    labels.iter().for_each(|label| counts[*label as usize] += 1);
    counts
}

/// The first images of each class in `drawn`, `training` in all.
fn of_each_class(
    classes: &[String],
    labels: &[u32],
    drawn: Vec<usize>,
    training: usize,
) -> Result<Vec<usize>> {
    let of: Vec<u32> = drawn.iter().map(|index| labels[*index]).collect();
    let counts = counts(classes, &of);
    let mut left = shares(training, &counts, 1, &counts);
    if let Some(class) = counts.iter().zip(&left).position(|(count, left)| count.min(left) == &0) {
        let expected = "at least 1 image of every class to train on";
        let got = format!("0 of class {} and {training} of all", classes[class]);
        return Err(DataError::format("training split", expected, got));
    }
    let kept = drawn.into_iter().filter(|index| {
        let left = &mut left[labels[*index] as usize];
        let keep = *left > 0;
        *left = left.saturating_sub(1);
        keep
    });
    Ok(kept.collect())
}

/// `total` dealt out in proportion to `counts`: to each at least `least`, while there is enough, and
/// at most its part of `most`.
fn shares(total: usize, counts: &[usize], least: usize, most: &[usize]) -> Vec<usize> {
    let sum = counts.iter().sum::<usize>().max(1) as u128;
    let exact = |count: usize| total as u128 * count as u128;
    let mut shares: Vec<usize> = counts
        .iter()
        .zip(most)
        .map(|(count, most)| ((exact(*count) / sum) as usize).max(least).min(*most))
        .collect();
    // How far a share is below its due.
    let due = |at: usize, share: usize| exact(counts[at]) as i128 - (share as u128 * sum) as i128;
    loop {
        let dealt: usize = shares.iter().sum();
        let all = 0..shares.len();
        if dealt < total {
            let open = all.filter(|at| shares[*at] < most[*at]);
            let Some(at) = open.max_by_key(|at| (due(*at, shares[*at]), usize::MAX - at)) else {
                return shares;
            };
            shares[at] += 1;
        } else if dealt > total {
            let full = all.filter(|at| shares[*at] > least);
            let at = full.min_by_key(|at| due(*at, shares[*at]));
            // Fewer than `least` for all: the last ones get none.
            let at = at.or_else(|| shares.iter().rposition(|share| *share > 0));
            let Some(at) = at else { return shares };
            shares[at] -= 1;
        } else {
            return shares;
        }
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

    /// Names and labels of classes of these sizes, one after the other.
    fn classes(sizes: &[usize]) -> (Vec<String>, Vec<u32>) {
        let names = (0..sizes.len()).map(|class| format!("c{class}")).collect();
        let labels = sizes.iter().enumerate().flat_map(|(c, size)| vec![c as u32; *size]);
        (names, labels.collect())
    }

    #[test]
    fn every_class_has_its_share() {
        let (names, labels) = classes(&[100, 50, 7, 1]);
        let of = |part: &[usize]| {
            let part: Vec<u32> = part.iter().map(|index| labels[*index]).collect();
            counts(&names, &part)
        };
        let split = TrainingSplit::stratified(&names, &labels, 142, 16, 3).unwrap();
        assert_eq!(of(&split.validation), [10, 5, 1, 0]);
        assert_eq!(of(&split.training), [90, 45, 6, 1]);
        assert!(split.training.iter().all(|index| !split.validation.contains(index)));
        // The first of the validation images are of several classes.
        assert!(of(&split.validation[..6]).iter().filter(|count| **count > 0).count() > 1);
        let few = TrainingSplit::stratified(&names, &labels, 4, 1, 3).unwrap();
        assert_eq!((of(&few.training), few.validation.len()), (vec![1, 1, 1, 1], 1));
        assert_ne!(split, TrainingSplit::stratified(&names, &labels, 142, 16, 4).unwrap());
        assert_eq!(split, TrainingSplit::stratified(&names, &labels, 142, 16, 3).unwrap());
    }

    #[test]
    fn a_class_that_cannot_be_split_is_named() {
        let (names, labels) = classes(&[5, 5, 5]);
        let error = TrainingSplit::stratified(&names, &labels, 2, 1, 3).unwrap_err().to_string();
        assert!(error.contains("0 of class c2"), "{error}");
        let (names, labels) = classes(&[1, 1]);
        let error = TrainingSplit::stratified(&names, &labels, 1, 1, 3).unwrap_err().to_string();
        assert!(error.contains("1 of class c0"), "{error}");
        let (names, labels) = classes(&[3, 0]);
        let error = TrainingSplit::stratified(&names, &labels, 2, 1, 3).unwrap_err().to_string();
        assert!(error.contains("0 of class c1"), "{error}");
    }

    #[test]
    fn a_validation_set_that_is_given_stays_whole() {
        let (names, mut labels) = classes(&[6, 4]);
        labels.extend([1, 0, 1]);
        let split = TrainingSplit::given(&names, &labels, 5, 3, 1).unwrap();
        assert_eq!(split.validation, [10, 11, 12]);
        assert_eq!(split.training.iter().filter(|index| **index < 6).count(), 3);
        assert!(TrainingSplit::given(&names, &labels, 11, 3, 1).is_err());
    }
}
