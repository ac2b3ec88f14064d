//! Predictions for image files.

use std::path::Path;

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use serde::Serialize;
use sren::models::Network;
use sren::{Equivariance, Image, PoseField, Similarity};
use sren_data::{NamedImage, ReducedImage};
use utoipa::ToSchema;

use super::dominant_pose::DominantPose;
use super::model::{Model, inference_device};
use super::preprocessing::Preprocessing;
use crate::error::{LabError, Result};

/// A class and its probability.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ClassProbability {
    /// The name of the class.
    pub class: String,
    /// 0 to 1.
    pub probability: f64,
}

/// The prediction for one image.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
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
    /// The image's name.
    pub(crate) name: String,
    /// What the network sees.
    pub(crate) input: Image,
    /// Height and width of the file.
    pub(crate) size: [usize; 2],
    /// Pixels of the file along one pixel of the input.
    pub(crate) pixel: f64,
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
    model: Model,
    classes: Vec<String>,
    preprocessing: Preprocessing,
}

impl Predictor {
    /// Images per batch: so many are worth computing at once.
    pub const BATCH: usize = 64;

    /// The model of the run in `path`, or a [bundled](super::BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(Model::open(path)?))
    }

    /// Predicts with a model.
    pub fn new(model: Model) -> Self {
        let (classes, preprocessing) = (model.config.classes(), model.config.preprocessing());
        Self { model, classes, preprocessing }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its network.
    pub fn network(&self) -> &Network {
        &self.model.network
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// What is done to images before the network sees them.
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
        let side = self.preprocessing.letterbox.side;
        let read = |image: &NamedImage| self.prepare(image.to_string(), &image.read(side)?);
        named.par_iter().map(read).collect()
    }

    /// Brings an image to what the network sees.
    pub fn prepare(&self, name: String, image: &ReducedImage) -> Result<PreparedImage> {
        let (size, side) = (image.size, self.preprocessing.letterbox.side);
        let pixel = size[0].max(size[1]) as f64 / side as f64;
        match self.preprocessing.apply(&image.image, &Similarity::IDENTITY) {
            Ok(input) => Ok(PreparedImage { name, input, size, pixel }),
            Err(error) => Err(LabError::invalid(name, "an image", error.to_string())),
        }
    }

    /// Images of one size, as the network sees them, as one tensor `[n, h, w, c]`.
    pub(crate) fn batch(&self, images: &[&Image]) -> Tensor<4> {
        let [height, width] = self.preprocessing.padding.canvas;
        let shape = [images.len(), height, width, self.preprocessing.letterbox.channels];
        let data: Vec<f32> = images.iter().flat_map(|image| image.data()).copied().collect();
        Tensor::from_data(TensorData::new(data, shape), &inference_device())
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
        let fields = self.model.network.pose_fields(&input)?;
        let has_poses = self.model.network.equivariance() != Equivariance::None;
        let pose = |(at, image): (usize, &&PreparedImage)| {
            let found = DominantPose::of(fields.first().filter(|_| has_poses)?, at)?;
            Some(DominantPose { scale_px: found.scale_px * image.pixel, ..found })
        };
        let poses: Vec<Option<DominantPose>> = images.par_iter().enumerate().map(pose).collect();
        let by_image = self.probabilities(input, fields)?.into_iter().zip(poses);
        Ok(by_image.map(|(probabilities, pose)| Posterior { probabilities, pose }).collect())
    }

    /// Prepared images as one tensor `[n, h, w, c]`.
    pub fn input(&self, images: &[&PreparedImage]) -> Tensor<4> {
        self.batch(&images.iter().map(|image| &image.input).collect::<Vec<_>>())
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

    /// The probability of each class for each of a [`batch`](Self::batch), in frames of these poses.
    pub(crate) fn probabilities(
        &self,
        input: Tensor<4>,
        fields: Vec<PoseField>,
    ) -> Result<Vec<Vec<f32>>> {
        let frames = self.model.network.frames_of(fields)?;
        // [n, h, w, c] -> [n, classes]
        let probabilities = softmax(self.model.network.forward_in(input, &frames)?, 1).into_data();
        let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
        Ok(probabilities.chunks_exact(self.classes.len().max(1)).map(<[f32]>::to_vec).collect())
    }
}
