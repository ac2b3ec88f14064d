//! From an image of any size to what a network sees.

use sren::{Image, Similarity};
use sren_data::{CANVAS, Letterbox, Mnist, Padding};

use crate::error::Result;
use crate::training::TrainingConfig;

/// How an image of any size becomes what a network sees.
#[derive(Debug, Clone, Copy)]
pub struct Preprocessing {
    /// The square it is brought to.
    pub letterbox: Letterbox,
    /// The canvas the square stands on.
    pub padding: Padding,
}

impl Preprocessing {
    /// The image, transformed about its centre, as the network sees it. Values are rounded to
    /// bytes, as in training.
    pub fn apply(&self, image: &Image, transform: &Similarity) -> Result<Image> {
        let (side, channels) = (self.letterbox.side, self.letterbox.channels);
        let data = self.letterbox.bytes(image)?.iter().map(|v| f32::from(*v) / 255.0).collect();
        let square = Image::new(side, side, channels, data)?;
        Ok(self.padding.apply(&square, transform)?)
    }
}

impl TrainingConfig {
    /// The preprocessing that the network was trained with.
    pub fn preprocessing(&self) -> Preprocessing {
        match &self.image_folder {
            Some(folder) => {
                Preprocessing { letterbox: folder.letterbox(), padding: folder.padding() }
            }
            None => Preprocessing {
                letterbox: Letterbox { side: Mnist::SIDE, channels: 1, mean_colour: false },
                padding: Padding { canvas: [CANVAS; 2], circular_mask: false },
            },
        }
    }
}
