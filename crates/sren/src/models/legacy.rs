//! Configurations and names of weights as version 0.1.0 wrote them.

use serde::Deserialize;

use super::backbone::BackboneConfig;
use super::canonical::CanonicalConfig;
use super::conv_layer::ConvLayerConfig;
use super::heads::{HeadConfig, OrientationHeadConfig, Pool, PooledHeadConfig};
use super::network::NetworkConfig;
use super::patch_encoder::PatchEncoderConfig;
use super::residual::{SimResNetConfig, StageConfig};
use crate::error::{Error, Result};
use crate::pose::{Equivariance, PoseEstimatorConfig};

/// A network in one table.
#[derive(Deserialize)]
pub(super) struct FlatConfig {
    classes: usize,
    image_channels: usize,
    equivariance: Equivariance,
    stem_channels: usize,
    stem_kernel: usize,
    stem_stride: usize,
    stem_window: Vec<ConvLayerConfig>,
    stem_kappa: f64,
    kappa: f64,
    relative_pose: bool,
    active_only: bool,
    poses_per_block: bool,
    dropout: f64,
    head_dropout: f64,
    orientation: Option<FlatOrientation>,
    second_look: Option<FlatSecondLook>,
    pool: Pool,
    stages: Vec<FlatStage>,
    pose: PoseEstimatorConfig,
}

/// A stage, without dilation.
#[derive(Deserialize)]
struct FlatStage {
    channels: usize,
    blocks: usize,
    stride: usize,
}

/// Today's orientation head.
#[derive(Deserialize)]
struct FlatOrientation {
    turns: usize,
    channels: usize,
    upright: f64,
    moments: Option<usize>,
}

/// Today's canonicalised branch.
#[derive(Deserialize)]
struct FlatSecondLook {
    turns: usize,
    weight: f64,
}

impl TryFrom<FlatConfig> for NetworkConfig {
    type Error = Error;

    fn try_from(flat: FlatConfig) -> Result<Self> {
        if !(flat.stem_window.is_empty() || flat.stages.is_empty()) {
            let expected = "a network of either windows or stages";
            return Err(Error::shape("NetworkConfig", expected, "both"));
        }
        let stage =
            |stage: &FlatStage| StageConfig::new(stage.channels, stage.blocks, stage.stride);
        let stages = flat.stages.iter().map(stage).collect();
        let backbone = if flat.stem_window.is_empty() {
            let residual = SimResNetConfig::new(
                flat.stem_channels,
                flat.stem_kernel,
                flat.stem_stride,
                stages,
            );
            let residual = residual
                .with_stem_reference_scale(1.0 / flat.stem_kappa)
                .with_reference_scale(1.0 / flat.kappa)
                .with_relative_pose(flat.relative_pose)
                .with_poses_per_block(flat.poses_per_block.then(|| flat.pose.clone()))
                .with_dropout(flat.dropout);
            BackboneConfig::Residual(residual)
        } else {
            BackboneConfig::Patches(PatchEncoderConfig::new(
                flat.stem_kernel,
                flat.stem_stride,
                1.0 / flat.stem_kappa,
                flat.stem_window,
                flat.stem_channels,
            ))
        };
        let head = match flat.orientation {
            None => {
                let head = PooledHeadConfig::new().with_pool(flat.pool);
                HeadConfig::Pooled(head.with_dropout(flat.head_dropout))
            }
            Some(FlatOrientation { turns, channels, upright, moments }) => {
                let head = OrientationHeadConfig::new(turns, channels)
                    .with_moments(moments.unwrap_or(3))
                    .with_upright_prior(upright)
                    .with_pool(flat.pool)
                    .with_dropout(flat.head_dropout);
                HeadConfig::Orientation(head)
            }
        };
        let canonical = flat
            .second_look
            .map(|FlatSecondLook { turns, weight }| CanonicalConfig::new(turns, weight));
        Ok(Self::new([flat.image_channels, flat.classes], backbone, head)
            .with_equivariance(flat.equivariance)
            .with_active_only(flat.active_only)
            .with_canonical(canonical)
            .with_pose(flat.pose))
    }
}

/// The present name of a weight that version 0.1.0 called `name`, in a network with the names `all`.
pub fn current_name<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> String {
    let (mut patches, mut canonicalised) = (false, false);
    for name in all {
        patches |= name.starts_with("window.");
        canonicalised |= name.starts_with("second_look.");
    }
    let (part, rest) = name.split_once('.').unwrap_or((name, ""));
    if part == "second_look" {
        let (part, rest) = rest.split_once('.').unwrap_or((rest, ""));
        return match part {
            "head" => format!("branch.head.linear.{rest}"),
            _ => format!("branch.backbone.{part}.{rest}"),
        };
    }
    let name = match part {
        "window" => format!("backbone.layers.{rest}"),
        "stem" if patches => format!("backbone.projection.{rest}"),
        "stem" | "norm" | "blocks" => format!("backbone.{name}"),
        "orientation" => match rest.strip_prefix("turned.") {
            Some(rest) => format!("head.moments.{rest}"),
            None => format!("head.{rest}"),
        },
        "head" => format!("head.linear.{rest}"),
        _ => return name.into(),
    };
    if canonicalised { format!("classifier.{name}") } else { name }
}
