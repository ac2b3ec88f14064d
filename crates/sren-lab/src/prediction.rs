//! What a trained network says of image files.

use std::path::{Path, PathBuf};

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use serde::Serialize;
use sren::models::SimResNet;
use sren::{Equivariance, Image, Similarity};
use sren_data::read_image;

use crate::dominant_pose::DominantPose;
use crate::error::{LabError, Result};
use crate::evaluation::inference_device;
use crate::training::{Preprocessing, Trained};

/// A class and how sure the network is of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassProbability {
    /// The name of the class.
    pub class: String,
    /// 0 to 1.
    pub probability: f64,
}

/// What the network says of an image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The image's file.
    pub image: String,
    /// The best guess.
    #[serde(flatten)]
    pub best: ClassProbability,
    /// The best guesses, best first.
    pub top: Vec<ClassProbability>,
    /// Orientation and size of what is seen, in pixels of the file; none in a flat image, and of a
    /// plain CNN, which reads no poses.
    pub pose: Option<DominantPose>,
}

/// A trained network, ready to be asked.
#[derive(Debug)]
pub struct Predictor {
    network: SimResNet,
    classes: Vec<String>,
    preprocessing: Preprocessing,
}

impl Predictor {
    /// The best network of the run in `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let Trained { network, config } = Trained::open(path)?;
        let (classes, preprocessing) = (config.classes(), config.preprocessing());
        Ok(Self { network, classes, preprocessing })
    }

    /// What the network says of each of `files`, the `top` best guesses; a file that cannot be read
    /// is an error of its own.
    pub fn predict(&self, files: &[PathBuf], top: usize) -> Result<Vec<Result<Prediction>>> {
        let read = |file: &PathBuf| -> Result<(Image, f64)> {
            let image = read_image(file)?;
            let longer = image.height().max(image.width()) as f64;
            let shown = self.preprocessing.show(&image, &Similarity::IDENTITY);
            let name = |e: LabError| {
                LabError::invalid(file.display().to_string(), "an image", e.to_string())
            };
            Ok((shown.map_err(name)?, longer / self.preprocessing.fit.side as f64))
        };
        let images: Vec<Result<(Image, f64)>> = files.par_iter().map(read).collect();
        let good: Vec<&Image> = images.iter().flatten().map(|(image, _)| image).collect();
        let mut told =
            if good.is_empty() { Vec::new() } else { self.tell(&good, top)? }.into_iter();
        let answer = |(image, file): (Result<(Image, f64)>, &PathBuf)| {
            let (_, pixel) = image?;
            let missing = || LabError::invalid("prediction", "one for each image", "fewer");
            let (top, pose) = told.next().ok_or_else(missing)?;
            Ok(Prediction {
                image: file.display().to_string(),
                best: top.first().cloned().ok_or_else(missing)?,
                top,
                pose: pose.map(|p| DominantPose { scale_px: p.scale_px * pixel, ..p }),
            })
        };
        Ok(images.into_iter().zip(files).map(answer).collect())
    }

    fn tell(
        &self,
        images: &[&Image],
        top: usize,
    ) -> Result<Vec<(Vec<ClassProbability>, Option<DominantPose>)>> {
        let [height, width] = self.preprocessing.padding.canvas;
        let shape = [images.len(), height, width, self.preprocessing.fit.channels];
        let data: Vec<f32> = images.iter().flat_map(|image| image.data()).copied().collect();
        let input = Tensor::from_data(TensorData::new(data, shape), &inference_device());
        let fields = self.network.pose_fields(&input)?;
        let follows = self.network.equivariance() != Equivariance::None;
        let pose = |image: usize| match follows {
            true => fields.first().and_then(|finest| DominantPose::of(finest, image)),
            false => None,
        };
        let poses: Vec<Option<DominantPose>> =
            (0..images.len()).into_par_iter().map(pose).collect();
        let frames = self.network.frames_of(fields)?;
        // [n, h, w, c] -> [n, classes]
        let told = softmax(self.network.forward_in(input, &frames)?, 1).into_data();
        let told: Vec<f32> = told.iter::<f32>().collect();
        let guesses = told.chunks_exact(self.classes.len().max(1)).map(|chances| {
            let mut order: Vec<usize> = (0..chances.len()).collect();
            order.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
            let guess = |class: &usize| ClassProbability {
                class: self.classes[*class].clone(),
                probability: f64::from(chances[*class]),
            };
            order.iter().take(top.max(1)).map(guess).collect()
        });
        Ok(guesses.zip(poses).collect())
    }
}
