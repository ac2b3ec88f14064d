//! The networks by name.

use burn::config::Config;

use super::orientation::OrientationConfig;
use super::resnet::{Pool, SimResNetConfig, StageConfig};
use super::second_look::SecondLookConfig;
use super::window::WindowLayerConfig;
use crate::PoseEstimatorConfig;
use crate::error::{Error, Result};

/// A network by name; [`config`](Self::config) gives its parts.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum Architecture {
    /// A net of 438 thousand parameters, for digits on a CPU: every fourth pixel sees its
    /// surroundings, in a large frame of its own, by a CNN of four layers, and the head asks which way
    /// the image is turned. The most equivariant one, for there are no blocks.
    Small,
    /// The same with wider layers: a million parameters, 1.7 times the time.
    Wide,
    /// A net of 82 thousand parameters that learns digits in minutes on a CPU: a dense 11x11 stem
    /// and two blocks on one grid of half the image's size, in frames of large neighbourhoods.
    Blocks,
    /// ResNet-18 in torchvision's layout. The stem takes the stride of the original's max pool as
    /// well, which is not scale-equivariant.
    Resnet18,
    /// Three stages of two blocks, 64 to 256 channels: the layout of wide residual networks at
    /// depth 16 and width 4.
    Resnet16,
    /// Wide residual network of depth 16 and width 8, with dropout.
    Wrn16_8,
    /// For photographs of about 64 pixels on a canvas of 96, on a CPU: three grids, in the
    /// estimator's own frames, and a second look at the photograph turned upright.
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

    /// The network for images of `image_channels` channels and `classes` classes.
    pub fn config(self, image_channels: usize, classes: usize) -> SimResNetConfig {
        let net = |stem: [usize; 3], stages: &[[usize; 3]]| {
            let [channels, kernel, stride] = stem;
            let stage = |[channels, blocks, stride]: &[usize; 3]| {
                StageConfig::new(*channels, *blocks, *stride)
            };
            let stages = stages.iter().map(stage).collect();
            SimResNetConfig::new(classes, image_channels, channels, kernel, stride, stages)
        };
        // Windows of 21 taps a side, halved by each of three layers.
        let windows = |[first, second, third, stem]: [usize; 4], hidden: usize| {
            let layers = [[first, 5], [second, 3], [third, 3]];
            let layer =
                |[channels, kernel]: [usize; 2]| WindowLayerConfig::new(channels, kernel, 2);
            let head = OrientationConfig::new(24, hidden).with_moments(Some(7)).with_upright(0.4);
            net([stem, 21, 4], &[])
                .with_stem_window(layers.map(layer).to_vec())
                .with_stem_kappa(0.15)
                .with_pool(Pool::MaxMean)
                .with_orientation(Some(head))
                .with_pose(digit_poses().with_rings(64))
        };
        match self {
            Self::Small => windows([24, 48, 96, 160], 96),
            Self::Wide => windows([40, 80, 160, 256], 128),
            Self::Blocks => net([32, 11, 2], &[[32, 1, 1], [64, 1, 1]])
                .with_stem_kappa(0.17)
                .with_kappa(0.3)
                .with_pool(Pool::MaxMean)
                .with_head_dropout(0.2)
                .with_pose(digit_poses()),
            Self::Resnet18 => net([64, 7, 4], &[[64, 2, 1], [128, 2, 2], [256, 2, 2], [512, 2, 2]]),
            Self::Resnet16 => net([16, 3, 1], &[[64, 2, 1], [128, 2, 2], [256, 2, 2]]),
            Self::Wrn16_8 => {
                net([16, 3, 1], &[[128, 2, 1], [256, 2, 2], [512, 2, 2]]).with_dropout(0.3)
            }
            Self::Photos => net([24, 7, 2], &[[32, 1, 1], [64, 2, 2], [96, 1, 2]])
                .with_stem_kappa(0.5)
                .with_kappa(0.5)
                .with_pool(Pool::MaxMean)
                .with_orientation(Some(OrientationConfig::new(24, 128).with_upright(0.7)))
                .with_second_look(Some(SecondLookConfig::new(2, 0.8)))
                .with_pose(photograph_poses()),
        }
    }
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
