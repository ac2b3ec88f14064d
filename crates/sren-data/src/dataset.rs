//! Labelled images of one size, cached in memory as bytes or, beyond a budget, read from files.

use std::path::PathBuf;

use rayon::prelude::*;
use sren_math::{Image, Similarity, element_count};

use crate::batch::Batch;
use crate::error::{DataError, Result};
use crate::files::read_reduced;
use crate::letterbox::Letterbox;
use crate::mnist::{Mnist, Split};
use crate::padding::Padding;

/// Side of the black canvas around a digit of 28 x 28.
pub const CANVAS: usize = 56;

/// Labelled images of one size, on a canvas, and the names of their classes.
///
/// ```
/// use sren_data::{Dataset, Split, TestSet};
///
/// let digits = Dataset::mnist(Split::Test)?;
/// let batch = digits.batch(&[3, 0], |index| TestSet::Rotated.transform(index))?;
/// assert_eq!((batch.shape, &batch.labels[..]), ([2, 56, 56, 1], &[0, 7][..]));
/// assert_eq!(batch.transforms[0], TestSet::Rotated.transform(3)?);
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    name: String,
    classes: Vec<String>,
    /// Height, width, channels without the canvas.
    stored: [usize; 3],
    padding: Padding,
    pixels: Vec<u8>,
    labels: Vec<u32>,
    /// The files of the last images, whose pixels are not cached.
    files: Vec<PathBuf>,
}

impl Dataset {
    /// Images `[n, height, width, channels]` and the class of each. `name` is used in errors.
    /// Returns an error if there are none, or if pixels, labels and classes do not match.
    pub fn new(
        name: impl Into<String>,
        classes: Vec<String>,
        shape: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u32>,
    ) -> Result<Self> {
        Self::with_files(name, classes, shape, pixels, labels, Vec::new())
    }

    /// [`new`](Self::new), where the pixels of the last images are not cached: they are read from
    /// `files` and letterboxed each time.
    pub fn with_files(
        name: impl Into<String>,
        classes: Vec<String>,
        [height, width, channels]: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u32>,
        files: Vec<PathBuf>,
    ) -> Result<Self> {
        let name = name.into();
        let stored = [height, width, channels];
        let Some(size) =
            element_count("dataset", &stored).ok().filter(|size| *size > 0 && !labels.is_empty())
        else {
            let got = format!("{} of {height} x {width} x {channels}", labels.len());
            return Err(DataError::format(name, "at least 1 image that is not empty", got));
        };
        let cached = labels.len().checked_sub(files.len());
        if cached.and_then(|n| n.checked_mul(size)) != Some(pixels.len()) {
            let cached = cached.unwrap_or(0);
            let expected = format!("{cached} images of {height} x {width} x {channels}");
            return Err(DataError::format(name, expected, format!("{} values", pixels.len())));
        }
        if let Some(label) = labels.iter().find(|label| **label as usize >= classes.len()) {
            let expected = format!("labels below {}", classes.len());
            return Err(DataError::format(name, expected, label.to_string()));
        }
        let padding = Padding { canvas: [height, width], circular_mask: false };
        Ok(Self { name, classes, stored, padding, pixels, labels, files })
    }

    /// The bundled digits, on a canvas of 56 x 56.
    pub fn mnist(split: Split) -> Result<Self> {
        let digits = Mnist::load(split)?;
        let classes = (0..10).map(|digit| digit.to_string()).collect();
        let labels = digits.labels().iter().map(|label| u32::from(*label)).collect();
        let shape = [Mnist::SIDE, Mnist::SIDE, 1];
        Self::new("MNIST", classes, shape, digits.into_pixels(), labels)?.on_canvas(CANVAS, CANVAS)
    }

    /// The same images in the middle of a black canvas.
    pub fn on_canvas(self, height: usize, width: usize) -> Result<Self> {
        self.with_padding(Padding { canvas: [height, width], circular_mask: false })
    }

    /// The same images with another `padding`. Returns an error if the canvas is too small.
    pub fn with_padding(mut self, padding: Padding) -> Result<Self> {
        let ([h, w, _], [height, width]) = (self.stored, padding.canvas);
        if height < h || width < w {
            let expected = format!("a canvas of at least {h} x {w}");
            return Err(DataError::format(self.name, expected, format!("{height} x {width}")));
        }
        self.padding = padding;
        Ok(self)
    }

    /// Number of images, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The name used in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Height, width and channels of an image on its canvas.
    pub fn shape(&self) -> [usize; 3] {
        [self.padding.canvas[0], self.padding.canvas[1], self.stored[2]]
    }

    /// The class of every image.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// An image on its canvas, values 0..1.
    pub fn image(&self, index: usize) -> Result<Image> {
        self.padded(&self.unpadded(index)?, &Similarity::IDENTITY)
    }

    /// An image without its canvas, values 0..1.
    pub fn unpadded(&self, index: usize) -> Result<Image> {
        let [h, w, c] = self.stored;
        let size = h * w * c;
        if index >= self.len() {
            let expected = format!("an index below {}", self.len());
            return Err(DataError::format(&self.name, expected, index.to_string()));
        }
        let cached = self.len() - self.files.len();
        let read;
        let bytes = if index < cached {
            &self.pixels[index * size..][..size]
        } else {
            let letterbox = Letterbox { side: h, channels: c, mean_colour: true };
            let file = &self.files[index - cached];
            let fitted = letterbox.bytes(&read_reduced(file, h)?.image);
            let name = || file.display().to_string();
            read = fitted.map_err(|e| DataError::format(name(), e.expected, e.got))?;
            &read[..]
        };
        let data = bytes.iter().map(|v| f32::from(*v) / 255.0).collect();
        Image::new(h, w, c, data).map_err(|e| DataError::format(&self.name, e.expected, e.got))
    }

    fn padded(&self, image: &Image, transform: &Similarity) -> Result<Image> {
        let padded = self.padding.apply(image, transform);
        padded.map_err(|e| DataError::format(&self.name, e.expected, e.got))
    }

    /// The images `indices`, each transformed about the centre by `transform(index)`. Returns an
    /// error if an index is too large or a file cannot be read.
    pub fn batch(
        &self,
        indices: &[usize],
        transform: impl Fn(usize) -> Result<Similarity> + Sync,
    ) -> Result<Batch> {
        self.augmented_batch(indices, |_, image| Ok(image), transform)
    }

    /// [`batch`](Self::batch) of augmented images: `augment(index, image)` is applied before the
    /// padding and preserves the size.
    pub fn augmented_batch(
        &self,
        indices: &[usize],
        augment: impl Fn(usize, Image) -> Result<Image> + Sync,
        transform: impl Fn(usize) -> Result<Similarity> + Sync,
    ) -> Result<Batch> {
        let one = |&index: &usize| -> Result<(Image, Similarity)> {
            let image = augment(index, self.unpadded(index)?)?;
            let transform = transform(index)?;
            Ok((self.padded(&image, &transform)?, transform))
        };
        let made: Vec<(Image, Similarity)> = indices.par_iter().map(one).collect::<Result<_>>()?;
        let [h, w, c] = self.shape();
        let mut images = Vec::with_capacity(made.len() * h * w * c);
        made.iter().for_each(|(image, _)| images.extend_from_slice(image.data()));
        let labels = indices.iter().map(|index| self.labels[*index]).collect();
        let transforms: Vec<Similarity> = made.iter().map(|(_, transform)| *transform).collect();
        Ok(Batch { images, shape: [made.len(), h, w, c], labels, transforms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestSet;

    #[test]
    fn digits_are_in_the_middle_and_rotate_about_it() {
        let digits = Dataset::mnist(Split::Test).unwrap();
        let upright = digits.batch(&[3, 0], |i| TestSet::Upright.transform(i)).unwrap();
        assert_eq!((upright.shape, &upright.labels[..]), ([2, 56, 56, 1], &[0, 7][..]));
        let digit = Mnist::load(Split::Test).unwrap().image(3).unwrap();
        assert_eq!(upright.images[14 * 56 + 14..][..28], digit.data()[..28]);

        let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        let rotated = digits.batch(&[3], |_| Ok(quarter)).unwrap();
        for (y, x) in (0..56).flat_map(|y| (0..56).map(move |x| (y, x))) {
            assert_eq!(rotated.images[x * 56 + 55 - y], upright.images[y * 56 + x]);
        }
        for index in [10_000, usize::MAX] {
            let error = digits.batch(&[index], |_| Ok(quarter)).unwrap_err();
            let expected = format!("MNIST: expected an index below 10000, got {index}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_batch_is_the_same_on_any_number_of_threads() {
        let digits = Dataset::mnist(Split::Test).unwrap();
        let indices: Vec<usize> = (0..40).collect();
        let make = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let set = TestSet::ScaledRotatedMoved;
            pool.install(|| digits.batch(&indices, |i| set.transform(i)).unwrap())
        };
        assert_eq!(make(1), make(3));
    }

    #[test]
    fn a_batch_has_the_transforms_it_was_drawn_with() {
        let digits = Dataset::mnist(Split::Test).unwrap();
        let indices = [5, 2, 9];
        let drawn = |i| TestSet::ScaledRotatedMoved.transform(i);
        let brighter = |_: usize, image: Image| {
            let data = image.data().iter().map(|v| (2.0 * v).min(1.0)).collect();
            Ok(Image::new(image.height(), image.width(), 1, data).unwrap())
        };
        let plain = digits.batch(&indices, drawn).unwrap();
        let augmented = digits.augmented_batch(&indices, brighter, drawn).unwrap();
        for batch in [&plain, &augmented] {
            assert_eq!(batch.transforms, indices.map(|i| drawn(i).unwrap()));
        }
        assert_ne!(plain.images, augmented.images);
        // Each image is the one that its transform gives.
        let again = digits.batch(&[2], |_| Ok(plain.transforms[1])).unwrap();
        assert_eq!(again.images, plain.images[56 * 56..][..56 * 56]);
    }

    #[test]
    fn a_batch_of_images_that_change_their_size_gives_an_error() {
        let digits = Dataset::mnist(Split::Test).unwrap();
        let larger = |_: usize, _: Image| Ok(Image::zeros(57, 10, 1).unwrap());
        assert!(digits.augmented_batch(&[0], larger, |_| Ok(Similarity::IDENTITY)).is_err());
    }

    #[test]
    fn inconsistent_parts_give_an_error() {
        let classes = || vec!["a".to_string(), "b".to_string()];
        let make = |shape, pixels: usize, labels: &[u32]| {
            Dataset::new("set", classes(), shape, vec![0; pixels], labels.to_vec())
        };
        assert!(make([2, 2, 3], 24, &[0, 1]).is_ok());
        for (shape, pixels, labels) in [
            ([2, 2, 3], 23, &[0, 1][..]),
            ([2, 2, 3], 24, &[0, 2]),
            ([2, 2, 3], 0, &[]),
            ([0, 2, 3], 0, &[0]),
            ([1 << 32, 1 << 32, 1], 0, &[0]),
            ([1 << 63, 1, 1], 0, &[0, 1]),
        ] {
            assert!(make(shape, pixels, labels).is_err());
        }
        assert!(make([2, 2, 3], 12, &[0]).unwrap().on_canvas(1, 2).is_err());
    }
}
