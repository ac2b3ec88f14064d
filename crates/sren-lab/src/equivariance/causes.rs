//! What an error comes from, by measuring each part alone.
//!
//! - **pose jumps**: how much the error falls when poses that have jumped are replaced by those of
//!   the original image, carried along by the transform;
//! - **gate**: how much more it falls when the gates are carried along, too, and poses where none is
//!   read. A pose that leaves the range of scales vanishes when the image grows;
//! - **pose noise**: how much more when all poses are;
//! - **border**: how much the features change when the black canvas around the image grows;
//! - **stride**: how much the error falls on a grid twice as fine, with the same weights;
//! - **interpolation**: what is left with carried poses. The patches that the stem reads show it
//!   before any weight.

use serde::Serialize;
use sren::equivariance::{LayerError, measure, network_layers};
use sren::models::{Network, NetworkConfig};
use sren::{Grid, Similarity, Weights};

use super::carried::{Choice, PoseChange, Subject, pixels};
use super::scenes::Scenes;
use crate::error::Result;
use crate::inference::inference_device;
use crate::progress::Task;

/// Images that causes are measured on,
const IMAGES: usize = 3;
/// and positions drawn for each transform.
const POSITIONS: usize = 3;
/// Pixels by which the canvas grows, at least.
const MARGIN: usize = 16;

/// The error of the poses themselves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PoseError {
    /// Median error of the angle, in degrees.
    pub median_angle_deg: f64,
    /// Median error of ln scale.
    pub median_log_scale: f64,
    /// The part of poses that have jumped: off by 10 degrees or 0.1 in ln scale.
    pub jumps: f64,
    /// The part of poses of which nothing is left.
    pub vanished: f64,
    /// Change of the gate, relative to the gate: of their squares.
    pub gate: f64,
}

/// The parts of one layer's error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// The layer; `patches` are what the stem reads.
    pub name: String,
    /// Its error.
    pub error: f64,
    /// The error without poses that jump.
    pub without_jumps: f64,
    /// The same with the gates carried along, too.
    pub carried_gates: f64,
    /// The error with all poses carried along.
    pub carried_poses: f64,
    /// The error on a grid twice as fine, where the network can be put on one.
    pub half_stride: Option<f64>,
    /// The change of the features when the canvas grows.
    pub border: Option<f64>,
}

/// What limits equivariance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Causes {
    /// The poses.
    pub pose: PoseError,
    /// The layers.
    pub layers: Vec<Parts>,
}

impl Parts {
    /// The parts by name: each is the error that goes if its cause is taken away.
    pub fn shares(&self) -> Vec<(&'static str, f64)> {
        let gone = |from: f64, to: f64| (from - to).max(0.0);
        let mut shares = vec![
            ("pose jumps", gone(self.error, self.without_jumps)),
            ("gate", gone(self.without_jumps, self.carried_gates)),
            ("pose noise", gone(self.carried_gates, self.carried_poses)),
            ("interpolation", self.carried_poses),
        ];
        shares.extend(self.half_stride.map(|half| ("stride", gone(self.error, half))));
        shares.extend(self.border.map(|border| ("border", border)));
        shares
    }

    /// The greatest part.
    pub fn cause(&self) -> &'static str {
        let greatest = self.shares().into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        greatest.map_or("none", |(name, _)| name)
    }
}

/// Measures the causes of the error of `network`, made by `config`, over `transforms`.
pub fn causes(
    network: &Network,
    config: &NetworkConfig,
    scenes: &Scenes,
    transforms: &[Similarity],
) -> Result<Causes> {
    let scenes = scenes.first(IMAGES);
    let subject = Subject::new(network, config, &scenes)?;
    let protocol = scenes.protocol(POSITIONS);
    let task = Task::new("measuring causes of errors", 7);
    let errors = |choice: Choice| -> Result<Vec<LayerError>> {
        let errors = measure(&protocol, transforms, |transform| subject.layers(transform, choice))?;
        task.advance(1);
        Ok(errors)
    };
    let read = errors(Choice::Read)?;
    let (without_jumps, gates) = (errors(Choice::WithoutJumps)?, errors(Choice::CarriedGates)?);
    let carried = errors(Choice::Carried)?;
    let half_stride = on_half_stride(network, config, &scenes, transforms)?;
    task.advance(1);
    let border = border(network, &scenes)?;
    task.advance(1);
    let layers = (0..read.len())
        .map(|i| Parts {
            name: read[i].name.clone(),
            error: read[i].error,
            without_jumps: without_jumps[i].error,
            carried_gates: gates[i].error,
            carried_poses: carried[i].error,
            half_stride: find(&half_stride, &read[i].name),
            border: find(&border, &read[i].name),
        })
        .collect();
    let mut changes = Vec::new();
    for transform in transforms {
        changes.extend(subject.pose_changes(transform)?);
    }
    Ok(Causes { pose: pose_error(&changes), layers })
}

fn find(errors: &[(String, f64)], name: &str) -> Option<f64> {
    errors.iter().find(|(known, _)| known == name).map(|(_, error)| *error)
}

fn pose_error(changes: &[PoseChange]) -> PoseError {
    let posed: Vec<&PoseChange> =
        changes.iter().filter(|c| c.gate.iter().all(|gate| *gate > 0.0)).collect();
    let median = |of: fn(&PoseChange) -> f64| {
        let mut values: Vec<f64> = posed.iter().map(|c| of(c)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let sum = |of: &dyn Fn(&PoseChange) -> f64| changes.iter().map(of).sum::<f64>();
    let gate_change = sum(&|c| (c.gate[0] - c.gate[1]).powi(2));
    let part = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    let gate = sum(&|c| c.gate[1].powi(2)).max(f64::MIN_POSITIVE);
    PoseError {
        median_angle_deg: median(|c| c.angle_deg),
        median_log_scale: median(|c| c.log_scale),
        jumps: part(posed.iter().filter(|c| c.jumped()).count(), posed.len()),
        vanished: part(
            changes.iter().filter(|c| c.vanished()).count(),
            changes.iter().filter(|c| c.gate[1] > 0.0).count(),
        ),
        gate: gate_change / gate,
    }
}

/// The errors of the same weights on grids twice as fine, taps as far apart in pixels.
fn on_half_stride(
    network: &Network,
    config: &NetworkConfig,
    scenes: &Scenes,
    transforms: &[Similarity],
) -> Result<Vec<(String, f64)>> {
    let Some(finer) = config.finer(2).filter(|config| config.equivariance.includes_scale()) else {
        return Ok(Vec::new());
    };
    let device = inference_device();
    let finer = Weights::of(network).apply(finer.init(&device)?)?;
    let errors = measure(&scenes.protocol(POSITIONS), transforms, |transform| {
        network_layers(&finer, scenes.view(transform, &device)?)
    })?;
    Ok(errors.into_iter().map(|layer| (layer.name, layer.error)).collect())
}

/// How much the features change, nothing else, when the canvas grows: rotated by 30 degrees and
/// scaled by 1.4, where the border is nearest.
fn border(network: &Network, scenes: &Scenes) -> Result<Vec<(String, f64)>> {
    let device = inference_device();
    let transform = Similarity::new(1.4, 30f64.to_radians(), [0.0; 2])?;
    let coarsest = network.grids(&Grid::pixels(scenes.side(), scenes.side()))?;
    let step = coarsest.iter().map(|grid| grid.step as usize).max().unwrap_or(1);
    // Whole steps, so that positions stay where they are.
    let margin = MARGIN.next_multiple_of(step);
    let wider = scenes.with_margin(margin)?;
    let before = network_layers(network, scenes.view(&transform, &device)?)?;
    let after = network_layers(network, wider.view(&transform, &device)?)?;
    let (middle, reach) = (0.5 * (scenes.side() as f64 - 1.0), 1.4 * scenes.radius());
    let mut found = Vec::new();
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let [n, _, _, c] = before.values.dims();
        let (old, new) = (pixels(&before.values), pixels(&after.values));
        let (mut change, mut energy) = (0.0, 0.0);
        for at in 0..before.grid.len() {
            let (row, column) = (at / before.grid.width, at % before.grid.width);
            let [x, y] = before.grid.point(row, column);
            let [u, v] = after.grid.origin.map(|origin| margin as f64 - origin);
            let [to_column, to_row] = [x + u, y + v].map(|d| d / after.grid.step);
            let aligned = (to_column - to_column.round()).abs() + (to_row - to_row.round()).abs();
            if aligned > 1e-6 || (x - middle).hypot(y - middle) > reach {
                continue;
            }
            let to = to_row.round() as usize * after.grid.width + to_column.round() as usize;
            for (image, channel) in (0..n).flat_map(|i| (0..c).map(move |j| (i, j))) {
                let a = f64::from(old[(image * before.grid.len() + at) * c + channel]);
                let b = f64::from(new[(image * after.grid.len() + to) * c + channel]);
                change += (a - b).powi(2);
                energy += a * a;
            }
        }
        if energy > 0.0 {
            found.push((name.clone(), change / energy));
        }
    }
    Ok(found)
}
