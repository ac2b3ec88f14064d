//! Predictions for image files.

use std::path::Path;

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use serde::Serialize;
use sren::models::Network;
use sren::{Equivariance, Image, Similarity};
use sren_data::{NamedImage, ReducedImage};

use super::dominant_pose::DominantPose;
use super::model::{Model, inference_device};
use super::preprocessing::Preprocessing;
use crate::error::{LabError, Result};

/// A class and its probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassProbability {
    /// The name of the class.
    pub class: String,
    /// 0 to 1.
    pub probability: f64,
}

/// The prediction for one image.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prediction {
    /// The image's name.
    pub image: String,
    /// The most probable class.
    #[serde(flatten)]
    pub best: ClassProbability,
    /// The most probable classes, best first.
    pub top: Vec<ClassProbability>,
    /// Orientation and scale of the image, in pixels of the file; none for a flat image, and none
    /// from a plain CNN, which estimates no poses.
    pub pose: Option<DominantPose>,
}

/// An image as a network sees it.
#[derive(Debug, Clone)]
pub struct PreparedImage {
    name: String,
    input: Image,
    /// Pixels of the file along one pixel of the input.
    pixel: f64,
}

/// A trained model that predicts.
///
/// ```no_run
/// use std::path::Path;
/// use sren_data::NamedImage;
/// use sren_lab::inference::Predictor;
///
/// let predictor = Predictor::open(Path::new("mnist-sren"))?;
/// for prediction in predictor.predict(&NamedImage::parse("seven.png")?, 3)? {
///     println!("{}", prediction?.best.class);
/// }
/// # Ok::<(), sren_lab::LabError>(())
/// ```
#[derive(Debug)]
pub struct Predictor {
    network: Network,
    classes: Vec<String>,
    preprocessing: Preprocessing,
}

impl Predictor {
    /// The model of the run in `path`, or the [bundled](super::BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        let Model { network, config } = Model::open(path)?;
        let (classes, preprocessing) = (config.classes(), config.preprocessing());
        Ok(Self { network, classes, preprocessing })
    }

    /// The prediction for each image, with the `top` most probable classes. An image that cannot be
    /// read is an error of its own.
    pub fn predict(&self, named: &[NamedImage], top: usize) -> Result<Vec<Result<Prediction>>> {
        self.predict_prepared(self.read(named), top)
    }

    /// Reads images and brings them to what the network sees, in parallel.
    pub fn read(&self, named: &[NamedImage]) -> Vec<Result<PreparedImage>> {
        let read = |image: &NamedImage| -> Result<PreparedImage> {
            let (name, side) = (image.to_string(), self.preprocessing.letterbox.side);
            let ReducedImage { image, size: [height, width], .. } = image.read(side)?;
            let pixel = height.max(width) as f64 / side as f64;
            match self.preprocessing.apply(&image, &Similarity::IDENTITY) {
                Ok(input) => Ok(PreparedImage { name, input, pixel }),
                Err(error) => Err(LabError::invalid(name, "an image", error.to_string())),
            }
        };
        named.par_iter().map(read).collect()
    }

    /// [`predict`](Self::predict) of images that [`read`](Self::read) gave.
    pub fn predict_prepared(
        &self,
        images: Vec<Result<PreparedImage>>,
        top: usize,
    ) -> Result<Vec<Result<Prediction>>> {
        let readable: Vec<&Image> = images.iter().flatten().map(|image| &image.input).collect();
        let mut found = if readable.is_empty() {
            Vec::new().into_iter()
        } else {
            self.predict_batch(&readable, top)?.into_iter()
        };
        let answer = |image: Result<PreparedImage>| {
            let PreparedImage { name, pixel, .. } = image?;
            let missing = || LabError::invalid("prediction", "one for each image", "fewer");
            let (top, pose) = found.next().ok_or_else(missing)?;
            Ok(Prediction {
                image: name,
                best: top.first().cloned().ok_or_else(missing)?,
                top,
                pose: pose.map(|p| DominantPose { scale_px: p.scale_px * pixel, ..p }),
            })
        };
        Ok(images.into_iter().map(answer).collect())
    }

    fn predict_batch(
        &self,
        images: &[&Image],
        top: usize,
    ) -> Result<Vec<(Vec<ClassProbability>, Option<DominantPose>)>> {
        let [height, width] = self.preprocessing.padding.canvas;
        let shape = [images.len(), height, width, self.preprocessing.letterbox.channels];
        let data: Vec<f32> = images.iter().flat_map(|image| image.data()).copied().collect();
        let input = Tensor::from_data(TensorData::new(data, shape), &inference_device());
        let fields = self.network.pose_fields(&input)?;
        let has_poses = self.network.equivariance() != Equivariance::None;
        let pose = |image: usize| match has_poses {
            true => fields.first().and_then(|finest| DominantPose::of(finest, image)),
            false => None,
        };
        let poses: Vec<Option<DominantPose>> =
            (0..images.len()).into_par_iter().map(pose).collect();
        let frames = self.network.frames_of(fields)?;
        // [n, h, w, c] -> [n, classes]
        let probabilities = softmax(self.network.forward_in(input, &frames)?, 1).into_data();
        let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
        let classes = probabilities.chunks_exact(self.classes.len().max(1)).map(|probabilities| {
            let mut order: Vec<usize> = (0..probabilities.len()).collect();
            order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
            let entry = |class: &usize| ClassProbability {
                class: self.classes[*class].clone(),
                probability: f64::from(probabilities[*class]),
            };
            order.iter().take(top.max(1)).map(entry).collect()
        });
        Ok(classes.zip(poses).collect())
    }
}
