//! A whole network by its configuration: a classifier, alone or canonicalised.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sren_math::Grid;

use super::backbone::{Backbone, BackboneConfig};
use super::canonical::{CanonicalConfig, Canonicalised};
use super::classifier::Classifier;
use super::geometry::{Geometry, check_pose, within};
use super::heads::{HeadConfig, Pool, PooledHeadConfig};
use super::legacy::FlatConfig;
use super::log_polar::LogPolarConfig;
use crate::error::{Error, Result};
use crate::layers::FeatureMap;
use crate::pose::{Equivariance, Frames, PoseEstimatorConfig, PoseField};

const OPERATION: &str = "NetworkConfig";

/// Configuration of a [`Network`]. [`Architecture`](super::Architecture) has the well-known ones.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sren::Equivariance;
/// use sren::models::Architecture;
///
/// let config = Architecture::Blocks.config(1, 10).with_equivariance(Equivariance::Rotation);
/// println!("{} parameters", config.geometry([56, 56])?.parameters());
/// let network = config.init(&Device::flex())?;
/// let logits = network.forward(Tensor::zeros([1, 56, 56, 1], &Device::flex()))?;
/// assert_eq!(logits.dims(), [1, 10]);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct NetworkConfig {
    /// Number of classes.
    pub classes: usize,
    /// Channels of the images.
    pub image_channels: usize,
    /// The equivariance group.
    pub equivariance: Equivariance,
    /// Whether only positions that have a pose are computed.
    pub active_only: bool,
    /// From images to features.
    pub backbone: BackboneConfig,
    /// From features to scores.
    pub head: HeadConfig,
    /// A plain branch that sees the image rotated upright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<CanonicalConfig>,
    /// A branch that sees the whole object in log-polar coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_polar: Option<LogPolarConfig>,
    /// The pose estimator.
    pub pose: PoseEstimatorConfig,
}

impl Serialize for NetworkConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Also reads the flat form of version 0.1.0.
impl<'de> Deserialize<'de> for NetworkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get("stem_channels").is_some() {
            let flat: FlatConfig = serde_json::from_value(value).map_err(D::Error::custom)?;
            return flat.try_into().map_err(D::Error::custom);
        }
        let config = Self::deserialize(value.clone()).map_err(D::Error::custom)?;
        let known = serde_json::to_value(&config).map_err(D::Error::custom)?;
        match unknown_key(&value, &known) {
            None => Ok(config),
            Some(key) => Err(D::Error::custom(format!("unknown field `{key}`"))),
        }
    }
}

/// A key of `found` that `known` does not have. Burn's configurations ignore them.
fn unknown_key(found: &Value, known: &Value) -> Option<String> {
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => {
            found.iter().find_map(|(key, value)| match known.get(key) {
                None => Some(key.clone()),
                Some(known) => unknown_key(value, known),
            })
        }
        (Value::Array(found), Value::Array(known)) => {
            found.iter().zip(known).find_map(|(found, known)| unknown_key(found, known))
        }
        _ => None,
    }
}

impl NetworkConfig {
    /// A network in frames that are equivariant to rotation and scale.
    pub fn new(
        [image_channels, classes]: [usize; 2],
        backbone: BackboneConfig,
        head: HeadConfig,
    ) -> Self {
        Self {
            classes,
            image_channels,
            equivariance: Equivariance::Similarity,
            active_only: true,
            backbone,
            head,
            canonical: None,
            log_polar: None,
            pose: PoseEstimatorConfig::new(),
        }
    }

    /// Sets the equivariance group.
    pub fn with_equivariance(self, equivariance: Equivariance) -> Self {
        Self { equivariance, ..self }
    }

    /// Sets whether only positions that have a pose are computed.
    pub fn with_active_only(self, active_only: bool) -> Self {
        Self { active_only, ..self }
    }

    /// Sets the branch that sees the image rotated upright.
    pub fn with_canonical(self, canonical: Option<CanonicalConfig>) -> Self {
        Self { canonical, ..self }
    }

    /// Sets the branch that sees the whole object in log-polar coordinates.
    pub fn with_log_polar(self, log_polar: Option<LogPolarConfig>) -> Self {
        Self { log_polar, ..self }
    }

    /// Sets the pose estimator.
    pub fn with_pose(self, pose: PoseEstimatorConfig) -> Self {
        Self { pose, ..self }
    }

    /// The network on grids `factor` times as fine, with weights of the same shapes; `None` if the
    /// stride is no multiple of `factor`.
    pub fn finer(&self, factor: usize) -> Option<Self> {
        Some(Self { backbone: self.backbone.finer(factor)?, ..self.clone() })
    }

    /// The layers of the network for images of `height` x `width`. Returns an error if the network is
    /// too large to be meant.
    pub fn geometry(&self, [height, width]: [usize; 2]) -> Result<Geometry> {
        within("channels of images", self.image_channels, 1, 1024)?;
        within("classes", self.classes, 2, 1_000_000)?;
        check_pose(&self.pose)?;
        let mut geometry = Geometry::new(Grid::pixels(height, width), self.image_channels);
        self.backbone.trace(&mut geometry)?;
        self.head.trace(self.classes, self.equivariance, &mut geometry)?;
        if let Some(branch) = &self.log_polar {
            let ends = [self.orientations()?, self.classes];
            branch.trace(ends, self.equivariance, &mut geometry, self.image_channels)?;
        }
        let Some(branch) = self.branch()? else { return Ok(geometry) };
        let mut both = geometry.branch();
        both.append("classifier.", geometry)?;
        both.append("branch.", branch.geometry([height, width])?)?;
        Ok(both)
    }

    /// A new network on `device`.
    pub fn init(&self, device: &Device) -> Result<Network> {
        let classifier = self.init_classifier(device)?;
        Ok(match (&self.canonical, self.branch()?) {
            (Some(config), Some(branch)) => {
                let branch = branch.init_classifier(device)?;
                Network::Canonicalised(Canonicalised::new(classifier, branch, config)?)
            }
            _ => Network::Single(classifier),
        })
    }

    fn init_classifier(&self, device: &Device) -> Result<Classifier> {
        if self.classes < 2 {
            return Err(Error::shape(OPERATION, "at least 2 classes", self.classes.to_string()));
        }
        let log_polar = match &self.log_polar {
            Some(branch) => {
                let sizes = [self.image_channels, self.orientations()?, self.classes];
                Some(branch.init(sizes, device)?)
            }
            None => None,
        };
        Ok(Classifier {
            log_polar,
            backbone: self.backbone.init(self.image_channels, device)?,
            head: self.head.init(self.backbone.channels(), self.classes, device)?,
            poses: self.pose.init()?,
            equivariance: self.equivariance,
            active_only: self.active_only,
            image_channels: self.image_channels,
        })
    }

    /// The orientations of the head, which a log-polar branch scores too.
    fn orientations(&self) -> Result<usize> {
        match &self.head {
            HeadConfig::Orientation(head) => Ok(head.orientations),
            HeadConfig::Pooled(_) => {
                let expected = "an orientation head for a log-polar branch";
                Err(Error::shape(OPERATION, expected, "a pooled head"))
            }
        }
    }

    /// The plain branch: the layers of the backbone, an ordinary pool, a linear head.
    fn branch(&self) -> Result<Option<Self>> {
        let Some(canonical) = &self.canonical else { return Ok(None) };
        canonical.check()?;
        let BackboneConfig::Residual(backbone) = &self.backbone else {
            let expected = "a residual backbone for a canonicalised network";
            return Err(Error::shape(OPERATION, expected, "a patch encoder"));
        };
        let backbone = backbone.clone().with_relative_pose(false).with_poses_per_block(None);
        let head = PooledHeadConfig::new().with_pool(Pool::MaxMean);
        Ok(Some(Self {
            equivariance: Equivariance::None,
            backbone: BackboneConfig::Residual(backbone),
            head: HeadConfig::Pooled(head),
            canonical: None,
            log_polar: None,
            ..self.clone()
        }))
    }
}

/// A network to train and to predict with. Made by [`NetworkConfig`].
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // a network has one
pub enum Network {
    /// A classifier alone.
    Single(Classifier),
    /// A classifier and a plain branch that sees the image rotated upright.
    Canonicalised(Canonicalised),
}

impl Network {
    /// The classifier in local frames.
    pub fn classifier(&self) -> &Classifier {
        match self {
            Self::Single(classifier) => classifier,
            Self::Canonicalised(pair) => &pair.classifier,
        }
    }

    /// The network with backbones that do not learn, only heads do. Batch norm still follows the
    /// images it is trained on.
    pub fn with_frozen_backbone(self) -> Self {
        match self {
            Self::Single(classifier) => Self::Single(classifier.with_frozen_backbone()),
            Self::Canonicalised(pair) => Self::Canonicalised(pair.with_frozen_backbones()),
        }
    }

    /// The equivariance group.
    pub fn equivariance(&self) -> Equivariance {
        self.classifier().equivariance
    }

    /// The grids that features live on, finest first, for images on `image`.
    pub fn grids(&self, image: &Grid) -> Result<Vec<Grid>> {
        self.classifier().backbone.grids(image)
    }

    /// The pose fields of images `[n, h, w, c]` on every grid.
    pub fn pose_fields(&self, images: &Tensor<4>) -> Result<Vec<PoseField>> {
        self.classifier().pose_fields(images)
    }

    /// The frames that the network computes in, from the pose field of each grid.
    pub fn frames_of(&self, fields: Vec<PoseField>) -> Result<Frames> {
        self.classifier().frames_of(fields)
    }

    /// The local frames of images `[n, h, w, c]`.
    pub fn frames(&self, images: &Tensor<4>) -> Result<Frames> {
        self.classifier().frames(images)
    }

    /// The equivariant feature maps of all layers in local frames by name, first to last.
    pub fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(String, FeatureMap)>> {
        self.classifier().feature_maps(images, frames)
    }

    /// Images `[n, h, w, c]` -> logits `[n, classes]`.
    pub fn forward(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        let frames = self.frames(&images)?;
        self.forward_in(images, &frames)
    }

    /// [`forward`](Self::forward) in given frames.
    pub fn forward_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<2>> {
        match self {
            Self::Single(classifier) => classifier.forward_in(images, frames),
            Self::Canonicalised(pair) => pair.forward_in(images, frames),
        }
    }
}
