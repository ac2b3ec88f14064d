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

impl PreparedImage {
    /// What the network sees.
    pub fn input(&self) -> &Image {
        &self.input
    }
}

/// What a network says of one image.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Posterior {
    /// The probability of each class, in their order.
    pub probabilities: Vec<f32>,
    /// Orientation and scale of the image, in its own pixels; see [`Prediction::pose`].
    pub pose: Option<DominantPose>,
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
    /// Images per batch: so many are worth computing at once.
    pub const BATCH: usize = 64;

    /// The model of the run in `path`, or the [bundled](super::BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        let Model { network, config } = Model::open(path)?;
        let (classes, preprocessing) = (config.classes(), config.preprocessing());
        Ok(Self { network, classes, preprocessing })
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The network, in inference mode.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What is done to an image before the network sees it.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// The prediction for each image, with the `top` most probable classes. An image that cannot be
    /// read is an error of its own.
    pub fn predict(&self, named: &[NamedImage], top: usize) -> Result<Vec<Result<Prediction>>> {
        self.predict_prepared(self.read(named), top)
    }

    /// Reads images and brings them to what the network sees, in parallel.
    pub fn read(&self, named: &[NamedImage]) -> Vec<Result<PreparedImage>> {
        let read = |image: &NamedImage| -> Result<PreparedImage> {
            let name = image.to_string();
            let ReducedImage { image, size, .. } = image.read(self.preprocessing.letterbox.side)?;
            self.prepare(name, &image, size)
        };
        named.par_iter().map(read).collect()
    }

    /// Brings an image, reduced from `size` (height and width) or not, to what the network sees.
    pub fn prepare(&self, name: String, image: &Image, size: [usize; 2]) -> Result<PreparedImage> {
        let pixel = size[0].max(size[1]) as f64 / self.preprocessing.letterbox.side as f64;
        match self.preprocessing.apply(image, &Similarity::IDENTITY) {
            Ok(input) => Ok(PreparedImage { name, input, pixel }),
            Err(error) => Err(LabError::invalid(name, "an image", error.to_string())),
        }
    }

    /// [`predict`](Self::predict) of images that [`read`](Self::read) gave.
    pub fn predict_prepared(
        &self,
        images: Vec<Result<PreparedImage>>,
        top: usize,
    ) -> Result<Vec<Result<Prediction>>> {
        let readable: Vec<&PreparedImage> = images.iter().flatten().collect();
        let mut found = self.posteriors(&readable)?.into_iter();
        let answer = |image: Result<PreparedImage>| {
            let name = image?.name;
            let missing = || LabError::invalid("prediction", "one for each image", "fewer");
            let Posterior { probabilities, pose } = found.next().ok_or_else(missing)?;
            let top = self.most_probable(&probabilities, top);
            let best = top.first().cloned().ok_or_else(missing)?;
            Ok(Prediction { image: name, best, top, pose })
        };
        Ok(images.into_iter().map(answer).collect())
    }

    /// What the network says of each image, all in one batch.
    pub fn posteriors(&self, images: &[&PreparedImage]) -> Result<Vec<Posterior>> {
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let input = self.input(images);
        let fields = self.network.pose_fields(&input)?;
        let has_poses = self.network.equivariance() != Equivariance::None;
        let pose = |(at, image): (usize, &&PreparedImage)| {
            let found = DominantPose::of(fields.first().filter(|_| has_poses)?, at)?;
            Some(DominantPose { scale_px: found.scale_px * image.pixel, ..found })
        };
        let poses: Vec<Option<DominantPose>> = images.par_iter().enumerate().map(pose).collect();
        let frames = self.network.frames_of(fields)?;
        // [n, h, w, c] -> [n, classes]
        let probabilities = softmax(self.network.forward_in(input, &frames)?, 1).into_data();
        let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
        let by_image = probabilities.chunks_exact(self.classes.len().max(1));
        let posterior = |(probabilities, pose): (&[f32], _)| Posterior {
            probabilities: probabilities.to_vec(),
            pose,
        };
        Ok(by_image.zip(poses).map(posterior).collect())
    }

    /// The images as a batch `[n, h, w, c]`.
    pub fn input(&self, images: &[&PreparedImage]) -> Tensor<4> {
        let [height, width] = self.preprocessing.padding.canvas;
        let shape = [images.len(), height, width, self.preprocessing.letterbox.channels];
        let data: Vec<f32> = images.iter().flat_map(|image| image.input.data()).copied().collect();
        Tensor::from_data(TensorData::new(data, shape), &inference_device())
    }

    /// The `top` most probable classes, at least one, best first.
    fn most_probable(&self, probabilities: &[f32], top: usize) -> Vec<ClassProbability> {
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
        let entry = |class: &usize| ClassProbability {
            class: self.classes[*class].clone(),
            probability: f64::from(probabilities[*class]),
        };
        order.iter().take(top.max(1)).map(entry).collect()
    }
}
