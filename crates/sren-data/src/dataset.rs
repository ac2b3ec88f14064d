//! Labelled images of one size, held in memory as bytes or, beyond a budget, in their files.

use std::path::PathBuf;

use rayon::prelude::*;
use sren_math::{Image, Similarity};

use crate::batch::Batch;
use crate::error::{DataError, Result};
use crate::files::read_image;
use crate::letterbox::Letterbox;
use crate::mnist::{Mnist, Split};
use crate::padding::Padding;

/// Side of the black canvas that a digit of 28 x 28 stands in the middle of.
pub const CANVAS: usize = 56;

/// Labelled images of one size and their classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    name: String,
    classes: Vec<String>,
    /// Height, width, channels of what is stored.
    stored: [usize; 3],
    padding: Padding,
    pixels: Vec<u8>,
    labels: Vec<u32>,
    /// The files of the last images, whose pixels are not held.
    files: Vec<PathBuf>,
}

impl Dataset {
    /// Images `[n, height, width, channels]`, each with the number of its class. `name` is used in
    /// errors.
    pub fn new(
        name: impl Into<String>,
        classes: Vec<String>,
        shape: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u32>,
    ) -> Result<Self> {
        Self::with_files(name, classes, shape, pixels, labels, Vec::new())
    }

    /// [`new`](Self::new), where the pixels of the last images are not held but read from `files`
    /// and made to fit each time.
    pub fn with_files(
        name: impl Into<String>,
        classes: Vec<String>,
        [height, width, channels]: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u32>,
        files: Vec<PathBuf>,
    ) -> Result<Self> {
        let name = name.into();
        if labels.is_empty() || height * width * channels == 0 {
            let got = format!("{} of {height} x {width} x {channels}", labels.len());
            return Err(DataError::format(name, "at least 1 image that is not empty", got));
        }
        let held = labels.len().saturating_sub(files.len());
        if pixels.len() != held * height * width * channels {
            let expected = format!("{held} images of {height} x {width} x {channels}");
            return Err(DataError::format(name, expected, format!("{} values", pixels.len())));
        }
        if let Some(label) = labels.iter().find(|label| **label as usize >= classes.len()) {
            let expected = format!("labels below {}", classes.len());
            return Err(DataError::format(name, expected, label.to_string()));
        }
        let stored = [height, width, channels];
        let padding = Padding { canvas: [height, width], window: false };
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
        self.with_padding(Padding { canvas: [height, width], window: false })
    }

    /// The same images, shown as `padding` says.
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

    /// What it is called in errors.
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
        self.shown(&self.unpadded(index)?, &Similarity::IDENTITY)
    }

    /// An image without its canvas, values 0..1.
    pub fn unpadded(&self, index: usize) -> Result<Image> {
        let [h, w, c] = self.stored;
        let size = h * w * c;
        if index >= self.len() {
            let expected = format!("an index below {}", self.len());
            return Err(DataError::format(&self.name, expected, index.to_string()));
        }
        let held = self.len() - self.files.len();
        let read;
        let bytes = if index < held {
            &self.pixels[index * size..][..size]
        } else {
            let fit = Letterbox { side: h, channels: c, mean_colour: true };
            let file = &self.files[index - held];
            let fitted = fit.bytes(&read_image(file)?);
            let name = || file.display().to_string();
            read = fitted.map_err(|e| DataError::format(name(), e.expected, e.got))?;
            &read[..]
        };
        let data = bytes.iter().map(|v| f32::from(*v) / 255.0).collect();
        Image::new(h, w, c, data).map_err(|e| DataError::format(&self.name, e.expected, e.got))
    }

    fn shown(&self, image: &Image, transform: &Similarity) -> Result<Image> {
        let shown = self.padding.show(image, transform);
        shown.map_err(|e| DataError::format(&self.name, e.expected, e.got))
    }

    /// The images `indices`, each transformed about its centre as `transform` says of its index.
    pub fn batch(
        &self,
        indices: &[usize],
        transform: impl Fn(usize) -> Result<Similarity> + Sync,
    ) -> Result<Batch> {
        self.augmented_batch(indices, |_, image| Ok(image), transform)
    }

    /// [`batch`](Self::batch) of images that `change` has changed, given their index, before they
    /// go on their canvas. Their size stays.
    pub fn augmented_batch(
        &self,
        indices: &[usize],
        change: impl Fn(usize, Image) -> Result<Image> + Sync,
        transform: impl Fn(usize) -> Result<Similarity> + Sync,
    ) -> Result<Batch> {
        let one = |&index: &usize| -> Result<Image> {
            let image = change(index, self.unpadded(index)?)?;
            self.shown(&image, &transform(index)?)
        };
        let made: Vec<Image> = indices.par_iter().map(one).collect::<Result<_>>()?;
        let [h, w, c] = self.shape();
        let mut images = Vec::with_capacity(made.len() * h * w * c);
        made.iter().for_each(|image| images.extend_from_slice(image.data()));
        let labels = indices.iter().map(|index| self.labels[*index]).collect();
        Ok(Batch { images, shape: [made.len(), h, w, c], labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestSet;

    #[test]
    fn digits_stand_on_their_canvas_and_turn_about_its_centre() {
        let digits = Dataset::mnist(Split::Test).unwrap();
        let upright = digits.batch(&[3, 0], |i| TestSet::Upright.transform(i)).unwrap();
        assert_eq!((upright.shape, &upright.labels[..]), ([2, 56, 56, 1], &[0, 7][..]));
        let digit = Mnist::load(Split::Test).unwrap().image(3).unwrap();
        assert_eq!(upright.images[14 * 56 + 14..][..28], digit.data()[..28]);

        let quarter = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        let turned = digits.batch(&[3], |_| Ok(quarter)).unwrap();
        for (y, x) in (0..56).flat_map(|y| (0..56).map(move |x| (y, x))) {
            assert_eq!(turned.images[x * 56 + 55 - y], upright.images[y * 56 + x]);
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
    fn what_does_not_fit_is_refused() {
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
        ] {
            assert!(make(shape, pixels, labels).is_err());
        }
        assert!(make([2, 2, 3], 12, &[0]).unwrap().on_canvas(1, 2).is_err());
    }
}
