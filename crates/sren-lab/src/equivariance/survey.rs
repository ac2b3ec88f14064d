//! Every layer of a network over groups of transforms.

use std::f64::consts::{FRAC_PI_2, TAU};

use serde::Serialize;
use sren::equivariance::{LayerError, measure, network_layers};
use sren::models::Network;
use sren::{Similarity, equivariance::Protocol};

use super::scenes::Scenes;
use crate::error::Result;
use crate::inference::inference_device;
use crate::progress::Task;

/// Scales of the main figures, and of the wide ones.
const SCALES: [f64; 6] = [0.7, 0.8, 0.9, 1.1, 1.25, 1.4];
const WIDE_SCALES: [f64; 8] = [0.5, 0.6, 0.75, 0.9, 1.15, 1.4, 1.7, 2.0];

/// Transforms that are measured together.
#[derive(Debug, Clone)]
pub struct Transforms {
    /// Rotations between the multiples of 90 degrees, evenly over the circle.
    pub rotation: Vec<Similarity>,
    /// Scales 0.7 to 1.4.
    pub scale: Vec<Similarity>,
    /// Both.
    pub both: Vec<Similarity>,
    /// Rotations by 90, 180 and 270 degrees.
    pub rot90: Vec<Similarity>,
    /// Translations by whole steps of 4 pixels. (Between its positions a grid has nothing that
    /// could be compared; rotated and scaled images are moved by parts of a step, too.)
    pub translation: Vec<Similarity>,
    /// Scales 0.5 to 2.
    pub wide_scale: Vec<Similarity>,
}

impl Transforms {
    /// `angles` rotations over the circle and as many rotated and scaled, rounded up to a multiple of 4:
    /// then none is a multiple of 90 degrees. All the scales, or every other if angles are few.
    pub fn new(angles: usize) -> Result<Self> {
        let angles = angles.max(1).next_multiple_of(4);
        let make = |scale: f64, angle: f64, shift: [f64; 2]| Similarity::new(scale, angle, shift);
        let angle = |i: usize| TAU * (i as f64 + 0.5) / angles as f64;
        let every = if angles < 6 { 2 } else { 1 };
        let scales = |list: &[f64]| {
            list.iter().step_by(every).map(|s| make(*s, 0.0, [0.0; 2])).collect::<Result<_, _>>()
        };
        let shifts = [[4.0, 0.0], [0.0, -8.0], [-4.0, 4.0]];
        Ok(Self {
            rotation: (0..angles)
                .map(|i| make(1.0, angle(i), [0.0; 2]))
                .collect::<Result<_, _>>()?,
            scale: scales(&SCALES)?,
            both: (0..angles)
                .map(|i| make(SCALES[i % SCALES.len()], angle(5 * i % angles), [0.0; 2]))
                .collect::<Result<_, _>>()?,
            rot90: (1..4)
                .map(|i| make(1.0, FRAC_PI_2 * i as f64, [0.0; 2]))
                .collect::<Result<_, _>>()?,
            translation: shifts.iter().map(|s| make(1.0, 0.0, *s)).collect::<Result<_, _>>()?,
            wide_scale: scales(&WIDE_SCALES)?,
        })
    }

    /// Number of transforms in all groups.
    fn len(&self) -> usize {
        let Self { rotation, scale, both, rot90, translation, wide_scale } = self;
        [rotation, scale, both, rot90, translation, wide_scale]
            .iter()
            .map(|group| group.len())
            .sum()
    }
}

/// Errors by group of transforms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Rotations over the circle.
    pub rotation: f64,
    /// Scales 0.7 to 1.4.
    pub scale: f64,
    /// Both.
    pub both: f64,
    /// Rotations by multiples of 90 degrees.
    pub rot90: f64,
    /// Translations.
    pub translation: f64,
    /// Scales 0.5 to 2.
    pub wide_scale: f64,
}

impl Errors {
    /// All of them, with their names.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("rotation", self.rotation),
            ("scale", self.scale),
            ("both", self.both),
            ("rot90", self.rot90),
            ("translation", self.translation),
            ("wide_scale", self.wide_scale),
        ]
    }

    /// Their roots: how much of the features changes, and not of their squares.
    pub fn roots(&self) -> Self {
        Self {
            rotation: self.rotation.sqrt(),
            scale: self.scale.sqrt(),
            both: self.both.sqrt(),
            rot90: self.rot90.sqrt(),
            translation: self.translation.sqrt(),
            wide_scale: self.wide_scale.sqrt(),
        }
    }

    fn max(&self, other: &Self) -> Self {
        Self {
            rotation: self.rotation.max(other.rotation),
            scale: self.scale.max(other.scale),
            both: self.both.max(other.both),
            rot90: self.rot90.max(other.rot90),
            translation: self.translation.max(other.translation),
            wide_scale: self.wide_scale.max(other.wide_scale),
        }
    }
}

/// The error of one transform.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Degrees, or scale.
    pub at: f64,
    /// The error.
    pub error: f64,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerErrors {
    /// Its name.
    pub name: String,
    /// Its errors.
    #[serde(flatten)]
    pub errors: Errors,
    /// The error of `both`, relative to how much the features vary about their mean.
    pub both_centred: f64,
    /// The error against the angle in degrees.
    pub by_angle: Vec<CurvePoint>,
    /// The error against the scale, 0.5 to 2.
    pub by_scale: Vec<CurvePoint>,
}

/// All layers of a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// The layers, first to last.
    pub layers: Vec<LayerErrors>,
    /// The largest error of any layer, group by group.
    pub worst: Errors,
    /// The layer with the largest error over both rotations and scales.
    pub worst_layer: String,
}

/// Measures all layers of `network`.
pub fn survey(
    network: &Network,
    scenes: &Scenes,
    transforms: &Transforms,
    positions: usize,
) -> Result<Survey> {
    let device = inference_device();
    let protocol: Protocol = scenes.protocol(positions);
    let task = Task::new("measuring equivariance", transforms.len());
    let group = |transforms: &[Similarity]| -> Result<Vec<LayerError>> {
        let errors = measure(&protocol, transforms, |transform| {
            network_layers(network, scenes.view(transform, &device)?)
        })?;
        task.advance(transforms.len());
        Ok(errors)
    };
    let (rotation, scale) = (group(&transforms.rotation)?, group(&transforms.scale)?);
    let (both, rot90) = (group(&transforms.both)?, group(&transforms.rot90)?);
    let (translation, wide) = (group(&transforms.translation)?, group(&transforms.wide_scale)?);
    let curve = |transforms: &[Similarity], errors: &[f64], at: fn(&Similarity) -> f64| {
        let mut curve: Vec<CurvePoint> = transforms
            .iter()
            .zip(errors)
            .map(|(transform, error)| CurvePoint { at: at(transform), error: *error })
            .collect();
        curve.sort_by(|a, b| a.at.total_cmp(&b.at));
        curve
    };
    let degrees = |t: &Similarity| t.angle().to_degrees().rem_euclid(360.0);
    let layers: Vec<LayerErrors> = (0..rotation.len())
        .map(|i| LayerErrors {
            name: rotation[i].name.clone(),
            errors: Errors {
                rotation: rotation[i].error,
                scale: scale[i].error,
                both: both[i].error,
                rot90: rot90[i].error,
                translation: translation[i].error,
                wide_scale: wide[i].error,
            },
            both_centred: both[i].centred,
            by_angle: curve(&transforms.rotation, &rotation[i].by_transform, degrees),
            by_scale: curve(&transforms.wide_scale, &wide[i].by_transform, Similarity::scale),
        })
        .collect();
    let worst = layers.iter().fold(Errors::default(), |worst, layer| worst.max(&layer.errors));
    let worst_layer = layers
        .iter()
        .max_by(|a, b| a.errors.both.total_cmp(&b.errors.both))
        .map_or(String::new(), |layer| layer.name.clone());
    Ok(Survey { layers, worst, worst_layer })
}
