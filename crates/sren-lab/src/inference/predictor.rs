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
    /// The model of the run in `path`, or a [bundled](super::BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(Model::open(path)?))
    }

    /// Predicts with a model.
    pub fn new(Model { network, config }: Model) -> Self {
        let (classes, preprocessing) = (config.classes(), config.preprocessing());
        Self { network, classes, preprocessing }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
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
        let input = self.batch(images);
        let fields = self.network.pose_fields(&input)?;
        let has_poses = self.network.equivariance() != Equivariance::None;
        let pose = |image: usize| match has_poses {
            true => fields.first().and_then(|finest| DominantPose::of(finest, image)),
            false => None,
        };
        let poses: Vec<Option<DominantPose>> =
            (0..images.len()).into_par_iter().map(pose).collect();
        let probabilities = self.probabilities(input, fields)?;
        let classes = probabilities.iter().map(|probabilities| {
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

    /// The probability of each class for each of a [`batch`](Self::batch), in frames of these poses.
    pub(crate) fn probabilities(
        &self,
        input: Tensor<4>,
        fields: Vec<PoseField>,
    ) -> Result<Vec<Vec<f32>>> {
        let frames = self.network.frames_of(fields)?;
        // [n, h, w, c] -> [n, classes]
        let probabilities = softmax(self.network.forward_in(input, &frames)?, 1).into_data();
        let probabilities: Vec<f32> = probabilities.iter::<f32>().collect();
        Ok(probabilities.chunks_exact(self.classes.len().max(1)).map(<[f32]>::to_vec).collect())
    }
}
