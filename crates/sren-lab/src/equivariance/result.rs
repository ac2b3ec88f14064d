//! The whole measurement: table, plot, JSON.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use sren::models::{Network, NetworkConfig};
use sren::{Equivariance, Weights};

use super::causes::{Causes, causes};
use super::scenes::Scenes;
use super::survey::{CurvePoint, Errors, Survey, Transforms, survey};
use crate::error::Result;
use crate::inference::inference_device;
use crate::plot::{LineChart, Series};
use crate::text_table::TextTable;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Rotations over the circle.
    pub angles: usize,
    /// Positions drawn for each transform: so many passes.
    pub positions: usize,
    /// Whether causes are measured.
    pub causes: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { angles: 12, positions: 4, causes: true }
    }
}

/// The plain CNN of the same shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Companion {
    /// Where its weights come from.
    pub weights: String,
    /// Its layers.
    #[serde(flatten)]
    pub survey: Survey,
}

/// A network to measure, and what it is called.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The network, which does not train.
    pub network: &'a Network,
    /// What it was made by.
    pub config: &'a NetworkConfig,
    /// Where its weights come from.
    pub weights: &'a str,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EquivarianceResult {
    /// mnist, smooth, or a folder.
    pub data: String,
    /// Number of images.
    pub images: usize,
    /// Their side in pixels.
    pub side: usize,
    /// Radius of the disc in which positions are compared, in pixels.
    pub radius: f64,
    /// The equivariance group: sren, so2, scale or cnn.
    pub model: String,
    /// Where its weights come from.
    pub weights: String,
    /// Its layers.
    #[serde(flatten)]
    pub survey: Survey,
    /// The plain CNN, unless the network is one itself and no other was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnn: Option<Companion>,
    /// What the errors come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
}

/// Where the weights of a [`plain_companion`] come from.
pub const NO_FRAMES: &str = "the same weights, no frames";

/// Measures a network beside `cnn`, or without one beside the same weights in plain
/// frames.
pub fn measure_equivariance(
    Subject { network, config, weights }: Subject,
    cnn: Option<Subject>,
    scenes: &Scenes,
    plan: Plan,
) -> Result<EquivarianceResult> {
    let transforms = Transforms::new(plan.angles)?;
    let equivariant = network.equivariance() != Equivariance::None;
    let errors = |network: &Network, config: &NetworkConfig| {
        survey(network, &scenes.read_by(config)?, &transforms, plan.positions)
    };
    let measured = errors(network, config)?;
    let companion = match cnn {
        Some(given) => Some((given.weights, errors(given.network, given.config)?)),
        None if equivariant => {
            let plain = plain_companion(network, config)?;
            Some((NO_FRAMES, errors(&plain, config)?))
        }
        None => None,
    };
    let companion =
        companion.map(|(weights, survey)| Companion { weights: weights.into(), survey });
    let some: Vec<_> = transforms.both.iter().step_by(2).copied().collect();
    let causes = (plan.causes && equivariant)
        .then(|| causes(network, config, &scenes.read_by(config)?, &some));
    Ok(EquivarianceResult {
        data: scenes.name().into(),
        images: scenes.len(),
        side: scenes.side(),
        radius: scenes.radius(),
        model: network.equivariance().name().into(),
        weights: weights.into(),
        survey: measured,
        cnn: companion,
        causes: causes.transpose()?,
    })
}

/// The plain CNN with the weights of `network`.
pub fn plain_companion(network: &Network, config: &NetworkConfig) -> Result<Network> {
    let plain = config.clone().with_equivariance(Equivariance::None);
    Ok(Weights::of(network).apply(plain.init(&inference_device())?)?)
}

impl EquivarianceResult {
    /// The error against the angle: every layer, and the CNN's.
    pub fn angle_chart(&self) -> LineChart {
        let title = "Error against angle";
        self.chart(title, "degrees", |layer| &layer.by_angle)
    }

    /// The error against the scale.
    pub fn scale_chart(&self) -> LineChart {
        self.chart("Error against scale", "scale", |layer| &layer.by_scale)
    }

    fn chart(
        &self,
        title: &str,
        x_label: &str,
        curve: fn(&super::LayerErrors) -> &Vec<CurvePoint>,
    ) -> LineChart {
        let series = |survey: &Survey, prefix: &str, dashed: bool| {
            let one = |layer: &super::LayerErrors| Series {
                name: format!("{prefix}{}", layer.name),
                points: curve(layer).iter().map(|p| [p.at, p.error]).collect(),
                dashed,
            };
            survey.layers.iter().map(one).collect::<Vec<_>>()
        };
        let mut all = series(&self.survey, "", false);
        if let Some(cnn) = &self.cnn {
            all.extend(series(&cnn.survey, "CNN ", true));
        }
        LineChart {
            title: title.into(),
            x_label: x_label.into(),
            y_label: "error".into(),
            log_y: true,
            y_range: None,
            series: all,
        }
    }
}

fn cells(name: &str, errors: &Errors) -> impl Iterator<Item = String> {
    std::iter::once(name.to_string()).chain(errors.named().map(|(_, error)| figure(error)))
}

/// Three digits that count.
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 {
        "0".into()
    } else if value < 1e-3 {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}")
    }
}

impl Display for EquivarianceResult {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Self { data, images, side, radius, model, weights, survey, cnn, causes } = self;
        write!(f, "{model} ({weights}) on {data}: ")?;
        write!(f, "{images} images of {side} x {side}, positions within ")?;
        write!(f, "{radius} pixels of the centre\n\n")?;
        let head = ["error", "rotation", "scale", "both", "90 degrees", "translation", "0.5 to 2"];
        let mut errors = TextTable::new(head);
        for layer in &survey.layers {
            errors.row(cells(&layer.name, &layer.errors));
        }
        errors.row(cells("worst", &survey.worst));
        errors.row(cells("root of worst", &survey.worst.roots()));
        if let Some(cnn) = cnn {
            for layer in &cnn.survey.layers {
                errors.row(cells(&format!("CNN {}", layer.name), &layer.errors));
            }
            errors.row(cells("CNN worst", &cnn.survey.worst));
        }
        write!(f, "{errors}")?;
        if let Some(cnn) = cnn {
            write!(f, "\n(CNN: {})", cnn.weights)?;
        }
        let Some(Causes { pose, layers }) = causes else {
            return write!(f, "\n\nworst layer: {}", survey.worst_layer);
        };
        write!(f, "\n\nposes: {:.2} degrees and ", pose.median_angle_deg)?;
        write!(f, "{:.4} in ln scale off (median), ", pose.median_log_scale)?;
        let [jumps, vanished] = [pose.jumps, pose.vanished].map(|part| 100.0 * part);
        write!(f, "{jumps:.1} % jump, {vanished:.1} % vanish, gate off by {}", figure(pose.gate))?;
        let head =
            ["part", "error", "without jumps", "+ gates", "+ all poses", "half stride", "border"];
        let mut table = TextTable::new(head);
        for parts in layers {
            let option = |value: Option<f64>| value.map_or("-".into(), figure);
            table.row([
                parts.name.clone(),
                figure(parts.error),
                figure(parts.without_jumps),
                figure(parts.carried_gates),
                figure(parts.carried_poses),
                option(parts.half_stride),
                option(parts.border),
            ]);
        }
        write!(f, "\n\n{table}")?;
        match layers.iter().find(|parts| parts.name == survey.worst_layer) {
            Some(parts) => {
                write!(f, "\n\nworst layer: {}, by {}", parts.name, parts.cause())
            }
            None => write!(f, "\n\nworst layer: {}", survey.worst_layer),
        }
    }
}
