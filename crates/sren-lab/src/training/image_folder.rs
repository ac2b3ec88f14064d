//! Images of one's own: preprocessing, classes, augmentation.

use serde::{Deserialize, Serialize};
use sren_data::{Letterbox, Padding, PhotoAugmentation};

use crate::error::{LabError, Result};

/// Sides of images and of their canvas.
const SIDES: std::ops::RangeInclusive<usize> = 8..=1024;
/// Most classes,
const MAX_CLASSES: usize = 10_000;
/// and most images.
const MAX_IMAGES: usize = 1 << 30;

/// Images from a folder or from STL-10: what they are brought to, and how they are trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImageFolderConfig {
    /// Side of the square that every image is brought to.
    pub size: usize,
    /// Side of the canvas that the square stands on, behind a circular mask.
    pub canvas: usize,
    /// Seed that draws the test images of a folder that is not split into train and test.
    pub split_seed: u64,
    /// Whether images of small classes count more, so that all classes count the same.
    pub balance: bool,
    /// Whether every class has its share of the images that are held out for validation. Runs of
    /// version 0.1.0 have drawn them from all images.
    #[serde(default)]
    pub stratified: bool,
    /// Number of images in a folder `val` beside `train` and `test`, to validate on instead of
    /// training images; filled in from the data.
    #[serde(default, skip_serializing_if = "is_none")]
    pub validation_files: usize,
    /// Number of images to train and validate on; filled in from the data.
    #[serde(default)]
    pub images: usize,
    /// The names of the classes; filled in from the data.
    #[serde(default)]
    pub classes: Vec<String>,
    /// How training images change from epoch to epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augment: Option<PhotoAugmentation>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl ImageFolderConfig {
    /// Channels of the images: red, green, blue.
    pub const CHANNELS: usize = 3;

    /// Brings images to `size`, and the canvas to one and a half times that, a multiple of 4.
    pub fn resize(&mut self, size: usize) {
        self.size = size;
        self.canvas = size.saturating_mul(3).div_ceil(8).saturating_mul(4);
    }

    /// The square that images are brought to.
    pub fn letterbox(&self) -> Letterbox {
        Letterbox { side: self.size, channels: Self::CHANNELS, mean_colour: true }
    }

    /// The canvas that the square stands on.
    pub fn padding(&self) -> Padding {
        Padding { canvas: [self.canvas; 2], circular_mask: true }
    }

    /// Returns an error if a setting is out of range. `name` is used in errors.
    pub fn check(&self, name: &str) -> Result<()> {
        if !(SIDES.contains(&self.size) && SIDES.contains(&self.canvas) && self.canvas >= self.size)
        {
            let expected = format!(
                "a size of {} to {} and a canvas no smaller, at most {}",
                SIDES.start(),
                SIDES.end(),
                SIDES.end()
            );
            let got = format!("{} and {}", self.size, self.canvas);
            return Err(LabError::invalid(name, expected, got));
        }
        if self.classes.len() == 1 || self.classes.len() > MAX_CLASSES {
            let expected = format!("2 to {MAX_CLASSES} classes");
            return Err(LabError::invalid(name, expected, self.classes.len().to_string()));
        }
        if self.images > MAX_IMAGES {
            let expected = format!("at most {MAX_IMAGES} images");
            return Err(LabError::invalid(name, expected, self.images.to_string()));
        }
        Ok(self.augment.map_or(Ok(()), |augment| augment.check())?)
    }
}

/// Weights of the classes of `labels`, so that every class that is there counts the same and an
/// image counts 1 in the mean.
pub fn class_weights(labels: impl Iterator<Item = u32>, classes: usize) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    labels.for_each(|label| counts[label as usize] += 1);
    let present = counts.iter().filter(|count| **count > 0).count();
    let total: usize = counts.iter().sum();
    // The weight of an absent class is not used, but must be positive.
    let weight = |count: &usize| match count {
        0 => 1.0,
        count => (total as f64 / (present * count) as f64) as f32,
    };
    counts.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_count_the_same() {
        let weights = class_weights([0, 0, 0, 2].into_iter(), 3);
        assert_eq!(weights, [4.0 / 6.0, 1.0, 2.0]);
        assert_eq!(class_weights([1, 0].into_iter(), 2), [1.0, 1.0]);
    }

    #[test]
    fn the_canvas_is_half_as_large_again() {
        let mut photographs = ImageFolderConfig {
            size: 0,
            canvas: 0,
            split_seed: 1,
            balance: true,
            stratified: true,
            validation_files: 0,
            images: 0,
            classes: Vec::new(),
            augment: None,
        };
        for (size, canvas) in [(64, 96), (96, 144), (30, 48), (8, 12)] {
            photographs.resize(size);
            assert_eq!(photographs.canvas, canvas);
            photographs.check("x").unwrap();
        }
        for size in [0, 7, 2000, usize::MAX] {
            photographs.resize(size);
            assert!(photographs.check("x").is_err());
        }
    }
}
