//! The networks by name.

use burn::config::Config;

use super::backbone::BackboneConfig;
use super::canonical::CanonicalConfig;
use super::conv_layer::ConvLayerConfig;
use super::heads::{HeadConfig, OrientationHeadConfig, Pool, PooledHeadConfig};
use super::network::NetworkConfig;
use super::patch_encoder::PatchEncoderConfig;
use super::residual::{SimResNetConfig, StageConfig};
use crate::error::{Error, Result};
use crate::pose::{Equivariance, PoseEstimatorConfig};

/// A network by name; [`config`](Self::config) gives its parts.
///
/// ```
/// use sren::Equivariance;
/// use sren::models::Architecture;
///
/// let plain = Architecture::Resnet18.config_for(Equivariance::None, 3, 1000);
/// assert_eq!(plain.geometry([224, 224])?.parameters(), 11_689_512);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Config, Debug, PartialEq, Eq, Copy)]
#[non_exhaustive]
pub enum Architecture {
    /// A patch encoder at every fourth pixel, in large frames, with an orientation head: 438 thousand
    /// parameters, for digits on a CPU. The most equivariant: no features are interpolated.
    Small,
    /// The same with wider layers: a million parameters, 1.7 times the time.
    Wide,
    /// A dense 11x11 stem and two residual blocks on one grid of half the image's size, in large
    /// frames: 82 thousand parameters, learns digits in minutes on a CPU.
    Blocks,
    /// The paper's ResNet-18, for digits: the original's layers on finer grids, since a grid of every
    /// 32nd pixel cannot follow a rotation, with an orientation head. As a plain CNN it has the
    /// original's strides and head; the stem takes the stride of the max pool as well.
    Resnet18,
    /// The paper's ResNet-16, for photographs: three stages of two blocks, 64 to 256 channels, the
    /// layout of wide residual networks at depth 16 and width 4, with an orientation head.
    Resnet16,
    /// The paper's wide residual network of depth 16 and width 8, with dropout, for photographs.
    Wrn16_8,
    /// A residual backbone on three grids with an orientation head and a canonicalised branch: for
    /// photographs of about 64 pixels on a canvas of 96, on a CPU.
    Photos,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Small,
        Self::Wide,
        Self::Blocks,
        Self::Resnet18,
        Self::Resnet16,
        Self::Wrn16_8,
        Self::Photos,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Wide => "wide",
            Self::Blocks => "blocks",
            Self::Resnet18 => "resnet18",
            Self::Resnet16 => "resnet16",
            Self::Wrn16_8 => "wrn16-8",
            Self::Photos => "photos",
        }
    }

    /// The network with the equivariance group `group`.
    pub fn config_for(
        self,
        group: Equivariance,
        image_channels: usize,
        classes: usize,
    ) -> NetworkConfig {
        let config = self.config(image_channels, classes).with_equivariance(group);
        if (self, group) != (Self::Resnet18, Equivariance::None) {
            return config;
        }
        let stages = [[64, 2, 1], [128, 2, 2], [256, 2, 2], [512, 2, 2]];
        let backbone = BackboneConfig::Residual(residual([64, 7, 4], &stages));
        NetworkConfig { backbone, head: HeadConfig::Pooled(PooledHeadConfig::new()), ..config }
    }

    /// The network for images of `image_channels` channels and `classes` classes, equivariant to
    /// rotation and scale.
    pub fn config(self, image_channels: usize, classes: usize) -> NetworkConfig {
        let network = |backbone: BackboneConfig, head: HeadConfig| {
            NetworkConfig::new([image_channels, classes], backbone, head)
        };
        match self {
            Self::Small => network(patches([24, 48, 96, 160]), orientation_head(96, 7, 0.4))
                .with_pose(digit_poses().with_rings(64)),
            Self::Wide => network(patches([40, 80, 160, 256]), orientation_head(128, 7, 0.4))
                .with_pose(digit_poses().with_rings(64)),
            Self::Blocks => {
                let backbone = residual([32, 11, 2], &[[32, 1, 1], [64, 1, 1]])
                    .with_stem_reference_scale(1.0 / 0.17)
                    .with_reference_scale(1.0 / 0.3);
                let head = PooledHeadConfig::new().with_pool(Pool::MaxMean).with_dropout(0.2);
                network(BackboneConfig::Residual(backbone), HeadConfig::Pooled(head))
                    .with_pose(digit_poses())
            }
            Self::Resnet18 => {
                let stages = [[64, 2, 1], [128, 2, 2], [256, 2, 1], [512, 2, 2]];
                let backbone = residual([64, 7, 2], &stages)
                    .with_stem_reference_scale(4.0)
                    .with_reference_scale(12.0);
                network(BackboneConfig::Residual(backbone), orientation_head(96, 7, 0.4))
                    .with_pose(digit_poses())
            }
            Self::Resnet16 => {
                let backbone = residual([16, 3, 1], &[[64, 2, 2], [128, 2, 2], [256, 2, 2]])
                    .with_stem_reference_scale(2.0)
                    .with_reference_scale(2.0);
                network(BackboneConfig::Residual(backbone), orientation_head(128, 3, 0.7))
                    .with_pose(photograph_poses())
            }
            Self::Wrn16_8 => {
                let backbone = residual([16, 3, 1], &[[128, 2, 2], [256, 2, 2], [512, 2, 2]])
                    .with_stem_reference_scale(2.0)
                    .with_reference_scale(2.0)
                    .with_dropout(0.3);
                network(BackboneConfig::Residual(backbone), orientation_head(128, 3, 0.7))
                    .with_pose(photograph_poses())
            }
            Self::Photos => {
                let backbone = residual([24, 7, 2], &[[32, 1, 1], [64, 2, 2], [96, 1, 2]])
                    .with_stem_reference_scale(2.0)
                    .with_reference_scale(2.0);
                network(BackboneConfig::Residual(backbone), orientation_head(128, 3, 0.7))
                    .with_canonical(Some(CanonicalConfig::new(2, 0.8)))
                    .with_pose(photograph_poses())
            }
        }
    }
}

/// A stem of `[channels, kernel, stride]` and stages of `[channels, blocks, stride]`.
fn residual([channels, kernel, stride]: [usize; 3], stages: &[[usize; 3]]) -> SimResNetConfig {
    let stage =
        |[channels, blocks, stride]: &[usize; 3]| StageConfig::new(*channels, *blocks, *stride);
    SimResNetConfig::new(channels, kernel, stride, stages.iter().map(stage).collect())
}

/// Patches of 21 taps per side around every fourth pixel, halved by each of three layers.
fn patches([first, second, third, channels]: [usize; 4]) -> BackboneConfig {
    let layers = [[first, 5], [second, 3], [third, 3]];
    let layer = |[channels, kernel]: [usize; 2]| ConvLayerConfig::new(channels, kernel, 2);
    let layers = layers.map(layer).to_vec();
    BackboneConfig::Patches(PatchEncoderConfig::new(21, 4, 1.0 / 0.15, layers, channels))
}

/// An orientation head of 24 orientations.
fn orientation_head(hidden: usize, moments: usize, upright_prior: f64) -> HeadConfig {
    let head = OrientationHeadConfig::new(24, hidden)
        .with_moments(moments)
        .with_upright_prior(upright_prior)
        .with_pool(Pool::MaxMean);
    HeadConfig::Orientation(head)
}

/// Frames about as large as a stroke's surroundings; every position near the digit has one.
fn digit_poses() -> PoseEstimatorConfig {
    PoseEstimatorConfig::new()
        .with_inner(0.45)
        .with_outer(50.0)
        .with_min_scale(1.0)
        .with_max_scale(38.0)
        .with_rings(32)
        .with_scales(29)
        .with_q(0.5)
        .with_prominence([0.0, 0.02])
        .with_lead([0.0, 0.02])
        .with_contrast([0.12, 0.3])
}

/// The estimator's own frames, open to all but the least certain: gates that are half closed almost
/// everywhere on a photograph take from the network what it could use.
fn photograph_poses() -> PoseEstimatorConfig {
    PoseEstimatorConfig::new().with_prominence([0.0, 0.02]).with_lead([0.0, 0.02])
}

impl std::str::FromStr for Architecture {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            Error::shape(
                "Architecture",
                "small, wide, blocks, resnet18, resnet16, wrn16-8 or photos",
                name,
            )
        })
    }
}
