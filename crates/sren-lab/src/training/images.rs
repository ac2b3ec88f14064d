//! The images of a config: read, checked against it, and drawn for training.

use sren::{Image, Similarity};
use sren_data::{
    Augmentation, AugmentationPolicy, Batch, Dataset, IMAGE_BUDGET, ImageFolder, Loaded, Source,
    Split, stl10,
};

use super::config::{TrainingConfig, most_held_out};
use super::image_folder::ImageFolderConfig;
use crate::error::{LabError, Result};
use crate::progress::Task;

impl TrainingConfig {
    /// Reads the images of `split`. Their classes must be those of the run.
    pub fn load(&self, split: Split) -> Result<Loaded> {
        let loaded = match (self.source(), &self.image_folder) {
            (Source::Mnist, None) => return Ok(Dataset::mnist(split)?.into()),
            (Source::Folder(path), Some(photographs)) => {
                let ImageFolderConfig { size, canvas, split_seed, .. } = *photographs;
                let folder = ImageFolder::open(path, split_seed)?;
                let task = Task::new("reading images", folder.file_count(split));
                folder.load_with(split, size, canvas, IMAGE_BUDGET, &|read| task.advance(read))?
            }
            (Source::Stl10(path), Some(ImageFolderConfig { size: stl10::SIDE, canvas, .. })) => {
                stl10::load_stl10(path, split, *canvas)?
            }
            (Source::Stl10(_), Some(ImageFolderConfig { size, .. })) => {
                let expected = format!("size {}", stl10::SIDE);
                return Err(LabError::invalid("STL-10", expected, size.to_string()));
            }
            (data, None) => {
                let expected = "an [image_folder] table in the training configuration";
                return Err(LabError::invalid(data.to_string(), expected, "none"));
            }
            (Source::Mnist, Some(_)) => {
                let expected = "a folder of images (--data)";
                return Err(LabError::invalid("image_folder", expected, "mnist"));
            }
        };
        let classes = self.image_folder.as_ref().map_or(&[][..], |p| &p.classes);
        let found = loaded.images.classes();
        if !classes.is_empty() && found != classes {
            let expected = format!("the {} classes of the run", classes.len());
            let got = format!("{} others", found.len());
            return Err(LabError::invalid(self.data.to_string(), expected, got));
        }
        Ok(loaded)
    }

    /// Reads the test images and forgets them: what is wrong with them is better known before
    /// training than after it.
    pub fn check_test_images(&self) -> Result<()> {
        match self.data {
            Source::Mnist => Ok(()),
            _ => self.load(Split::Test).map(|_| ()),
        }
    }

    /// Fills in what follows from the training images: classes, the ends of the network, and how
    /// many to train and validate on where the config says 0.
    pub fn fit_to(&mut self, loaded: &Loaded) {
        let Some(folder) = &mut self.image_folder else { return };
        let images = &loaded.images;
        folder.classes = images.classes().to_vec();
        folder.images = images.len();
        folder.validation_files = loaded.validation;
        if let Some(network) = &mut self.network {
            network.image_channels = ImageFolderConfig::CHANNELS;
            network.classes = images.classes().len();
        }
        if loaded.validation > 0 {
            self.validation_images = loaded.validation;
        } else if self.validation_images == 0 {
            let most = match self.training_images {
                0 => images.len(),
                training => most_held_out(training),
            };
            self.validation_images = (images.len() / 10).max(1).min(most);
        }
        if self.training_images == 0 {
            self.training_images = images.len().saturating_sub(self.validation_images);
        }
    }

    /// The names of the classes.
    pub fn classes(&self) -> Vec<String> {
        match &self.image_folder {
            Some(photographs) => photographs.classes.clone(),
            None => (0..10).map(|digit| digit.to_string()).collect(),
        }
    }

    /// Whether a training image is the same in every epoch.
    pub fn has_constant_images(&self) -> bool {
        self.augment == AugmentationPolicy::None
            && self.shift == 0
            && self.image_folder.as_ref().is_none_or(|p| p.augment.is_none())
    }

    /// The images `indices` as training sees them in `epoch`.
    pub(super) fn training_batch(
        &self,
        images: &Dataset,
        epoch: usize,
        indices: &[usize],
    ) -> Result<Batch> {
        let seed = self.seed;
        let augment = self.image_folder.as_ref().and_then(|photographs| photographs.augment);
        let change = |index: usize, image: Image| match augment {
            Some(augment) => augment.apply(image, seed, epoch, index),
            None => Ok(image),
        };
        let transform = |index: usize| self.transform(epoch, index);
        Ok(images.augmented_batch(indices, change, transform)?)
    }

    /// The transform of image number `index` in `epoch`.
    pub(super) fn transform(&self, epoch: usize, index: usize) -> sren_data::Result<Similarity> {
        let augmentation = self.augment.transforms();
        // The test set of photographs does not move them.
        let shift = if self.image_folder.is_some() { 0 } else { augmentation.shift };
        let augmentation = Augmentation { shift: shift.max(self.shift), ..augmentation };
        augmentation.draw(self.seed, epoch, index)
    }
}
