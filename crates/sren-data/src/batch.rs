//! Batches `[n, h, w, c]`, made in parallel when they are needed.

use rayon::prelude::*;
use sren_math::{About, Image, Interpolation, Similarity, warp};

use crate::error::{DataError, Result};
use crate::mnist::Mnist;

/// Height and width of the black canvas that a digit of 28 x 28 stands in the middle of.
pub const CANVAS: usize = 56;

/// Images and their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Values 0..1, `[n, h, w, c]`.
    pub images: Vec<f32>,
    /// Number of images, height, width, channels.
    pub shape: [usize; 4],
    /// The class of each image.
    pub labels: Vec<u8>,
}

impl Batch {
    /// The digits `indices` on their canvas, each transformed about its centre as `transform` says
    /// of its index.
    pub fn digits(
        digits: &Mnist,
        indices: &[usize],
        transform: impl Fn(usize) -> Result<Similarity> + Sync,
    ) -> Result<Self> {
        let one = |&index: &usize| -> Result<(Image, u8)> {
            let found = digits.image(index).zip(digits.label(index));
            let (image, label) = found.ok_or_else(|| {
                let expected = format!("an index below {}", digits.len());
                DataError::format("MNIST", expected, index.to_string())
            })?;
            let canvas = image
                .padded(CANVAS, CANVAS)
                .map_err(|e| DataError::format("MNIST", e.expected, e.got))?;
            let transform = transform(index)?;
            if transform == Similarity::IDENTITY {
                return Ok((canvas, label));
            }
            Ok((warp(&canvas, &transform, About::Centre, Interpolation::Bilinear), label))
        };
        let made: Vec<(Image, u8)> = indices.par_iter().map(one).collect::<Result<_>>()?;
        let mut images = Vec::with_capacity(made.len() * CANVAS * CANVAS);
        made.iter().for_each(|(image, _)| images.extend_from_slice(image.data()));
        let labels = made.iter().map(|(_, label)| *label).collect();
        Ok(Self { images, shape: [made.len(), CANVAS, CANVAS, 1], labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Split, TestSet};

    #[test]
    fn digits_stand_on_their_canvas_and_turn_about_its_centre() {
        let digits = Mnist::load(Split::Test).unwrap();
        let upright = Batch::digits(&digits, &[3, 0], |i| TestSet::Upright.transform(i)).unwrap();
        assert_eq!((upright.shape, &upright.labels[..]), ([2, 56, 56, 1], &[0, 7][..]));
        let digit = digits.image(3).unwrap();
        assert_eq!(upright.images[14 * 56 + 14..][..28], digit.data()[..28]);

        let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        let turned = Batch::digits(&digits, &[3], |_| Ok(quarter)).unwrap();
        for (y, x) in (0..56).flat_map(|y| (0..56).map(move |x| (y, x))) {
            assert_eq!(turned.images[x * 56 + 55 - y], upright.images[y * 56 + x]);
        }
        let error = Batch::digits(&digits, &[10_000], |_| Ok(quarter)).unwrap_err();
        assert_eq!(error.to_string(), "MNIST: expected an index below 10000, got 10000");
    }

    #[test]
    fn a_batch_is_the_same_on_any_number_of_threads() {
        let digits = Mnist::load(Split::Test).unwrap();
        let indices: Vec<usize> = (0..40).collect();
        let make = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let set = TestSet::ScaledRotatedMoved;
            pool.install(|| Batch::digits(&digits, &indices, |i| set.transform(i)).unwrap())
        };
        assert_eq!(make(1), make(3));
    }
}
