//! The images of a recipe: read, checked against it, and drawn for training.

use sren::{Image, Similarity};
use sren_data::{
    Augmentation, Batch, CANVAS, Dataset, Fit, IMAGE_BUDGET, ImageFolder, Loaded, Mnist, Mount,
    Source, Split, stl10,
};

use super::photographs::Photographs;
use super::recipe::Recipe;
use crate::error::{LabError, Result};

/// How an image of any size becomes what the network of a recipe sees.
#[derive(Debug, Clone, Copy)]
pub struct Presentation {
    /// What it is brought to.
    pub fit: Fit,
    /// How it is shown.
    pub mount: Mount,
}

impl Presentation {
    /// The image, transformed about its centre, as the network sees it: by way of bytes, as in
    /// training.
    pub fn show(&self, image: &Image, transform: &Similarity) -> Result<Image> {
        let (side, channels) = (self.fit.side, self.fit.channels);
        let data = self.fit.bytes(image)?.iter().map(|v| f32::from(*v) / 255.0).collect();
        let fitted = Image::new(side, side, channels, data)?;
        Ok(self.mount.show(&fitted, transform)?)
    }
}

impl Recipe {
    /// Reads the images of `split`. Those that a run was made for must be there still.
    pub fn load(&self, split: Split) -> Result<Loaded> {
        let loaded = match (&self.data, &self.photographs) {
            (Source::Mnist, None) => return Ok(whole(Dataset::mnist(split)?)),
            (Source::Folder(path), Some(photographs)) => {
                let Photographs { size, canvas, split_seed, .. } = *photographs;
                ImageFolder::open(path, split_seed)?.load(split, size, canvas, IMAGE_BUDGET)?
            }
            (Source::Stl10(path), Some(Photographs { size: stl10::SIDE, canvas, .. })) => {
                whole(stl10::load_stl10(path, split, *canvas)?)
            }
            (Source::Stl10(_), Some(Photographs { size, .. })) => {
                let expected = format!("size {}", stl10::SIDE);
                return Err(LabError::unfit("STL-10", expected, size.to_string()));
            }
            (data, None) => {
                let expected = "photographs in the recipe of its images";
                return Err(LabError::unfit(data.to_string(), expected, "none"));
            }
            (Source::Mnist, Some(_)) => {
                let expected = "a folder of images (--data)";
                return Err(LabError::unfit("photographs", expected, "mnist"));
            }
        };
        let classes = self.photographs.as_ref().map_or(&[][..], |p| &p.classes);
        let images = self.photographs.as_ref().map_or(0, |p| p.images);
        let found = loaded.images.classes();
        if !classes.is_empty() && found != classes {
            let expected = format!("the {} classes of the run", classes.len());
            let got = format!("{} others", found.len());
            return Err(LabError::unfit(self.data.to_string(), expected, got));
        }
        if split == Split::Train && images != 0 && loaded.images.len() != images {
            let expected = format!("the {images} training images of the run");
            let got = loaded.images.len().to_string();
            return Err(LabError::unfit(self.data.to_string(), expected, got));
        }
        Ok(loaded)
    }

    /// Fills in what follows from the training images: classes, the ends of the network, and how
    /// many to train and validate on where the recipe says 0.
    pub fn fit_to(&mut self, images: &Dataset) {
        let Some(photographs) = &mut self.photographs else { return };
        photographs.classes = images.classes().to_vec();
        photographs.images = images.len();
        if let Some(network) = &mut self.network {
            network.image_channels = Photographs::CHANNELS;
            network.classes = images.classes().len();
        }
        if self.validation_images == 0 {
            self.validation_images = (images.len() / 10).max(1);
        }
        if self.training_images == 0 {
            self.training_images = images.len().saturating_sub(self.validation_images);
        }
    }

    /// The names of the classes.
    pub fn classes(&self) -> Vec<String> {
        match &self.photographs {
            Some(photographs) => photographs.classes.clone(),
            None => (0..10).map(|digit| digit.to_string()).collect(),
        }
    }

    /// How images become what the network sees.
    pub fn presentation(&self) -> Presentation {
        match &self.photographs {
            Some(photographs) => {
                Presentation { fit: photographs.fit(), mount: photographs.mount() }
            }
            None => Presentation {
                fit: Fit { side: Mnist::SIDE, channels: 1, mean_colour: false },
                mount: Mount { canvas: [CANVAS; 2], window: false },
            },
        }
    }

    /// Whether a training image is the same in every epoch.
    pub fn keeps_images(&self) -> bool {
        !self.augment
            && self.shift == 0
            && self.photographs.as_ref().is_none_or(|p| p.augment.is_none())
    }

    /// The images `indices` as training sees them in `epoch`.
    pub(super) fn training_batch(
        &self,
        images: &Dataset,
        epoch: usize,
        indices: &[usize],
    ) -> Result<Batch> {
        let seed = self.seed;
        let augment = self.photographs.as_ref().and_then(|photographs| photographs.augment);
        let change = |index: usize, image: Image| match augment {
            Some(augment) => augment.apply(image, seed, epoch, index),
            None => Ok(image),
        };
        let transform = |index: usize| self.transform(epoch, index);
        Ok(images.changed_batch(indices, change, transform)?)
    }

    /// How image number `index` is turned, scaled and moved in `epoch`.
    pub(super) fn transform(&self, epoch: usize, index: usize) -> sren_data::Result<Similarity> {
        let turns = if self.augment { Augmentation::PAPER } else { Augmentation::NONE };
        Augmentation { shift: self.shift, ..turns }.draw(self.seed, epoch, index)
    }
}

fn whole(images: Dataset) -> Loaded {
    Loaded { images, broken: Vec::new() }
}
