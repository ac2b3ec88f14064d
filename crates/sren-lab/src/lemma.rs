//! The lemma that equivariance rests on, measured: for `g = L_T f` with T of scale s and angle
//! alpha, the pose of g at `T x` is the pose of f at x, s times as large and rotated by alpha.
//!
//! The field of f is read on its pixels by the fast estimator; g, where `T x` falls between
//! pixels, by the reference in f64, which agrees with the fast one to 1e-4.

use std::f64::consts::TAU;
use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::Serialize;
use sren::pose::Images;
use sren::{
    About, Grid, Image, Interpolation, PoseEstimator, Similarity, read_pose, warp, wrap_angle,
};
use sren_data::resize;

use crate::error::Result;
use crate::progress::Task;

/// A pose follows the image if its angle is right within this many degrees
const ANGLE_TOLERANCE_DEG: f64 = 10.0;
/// and its scale within this in ln scale.
const LOG_SCALE_TOLERANCE: f64 = 0.1;

/// Side of the black canvas around a digit of 28 pixels, as in the paper's test sets.
const DIGIT_CANVAS: usize = 56;
/// Longer side that a photograph is brought to,
const PHOTOGRAPH_SIDE: usize = 128;
/// and side of its canvas: at scale 1.4 and any angle, all of it stays in frame.
const PHOTOGRAPH_CANVAS: usize = 256;

/// How the lemma is measured.
#[derive(Debug, Clone)]
pub struct LemmaProtocol {
    /// Scales s are drawn uniformly from this range; angles from the whole circle.
    pub scales: Range<f64>,
    /// Only pixels of at least this luminance are compared.
    pub min_luminance: f32,
    /// Positions drawn per image.
    pub positions: usize,
    /// Seed of all draws.
    pub seed: u64,
}

impl LemmaProtocol {
    /// Digits: s in [1, 2), positions on the strokes.
    pub fn digits(seed: u64) -> Self {
        Self { scales: 1.0..2.0, min_luminance: 0.5, positions: 25, seed }
    }

    /// Photographs: s in [0.8, 1.4), positions anywhere on them.
    pub fn photographs(seed: u64) -> Self {
        Self { scales: 0.8..1.4, min_luminance: f32::NEG_INFINITY, positions: 25, seed }
    }
}

/// An image on a black canvas large enough for its transforms.
#[derive(Debug, Clone)]
pub struct LemmaSubject {
    canvas: Image,
    /// Height and width of the image in the middle of the canvas.
    content: [usize; 2],
}

impl LemmaSubject {
    /// A digit of 28 x 28 pixels, on a canvas of twice the size.
    pub fn digit(image: &Image) -> Result<Self> {
        let content = [image.height(), image.width()];
        Ok(Self { canvas: image.padded(DIGIT_CANVAS, DIGIT_CANVAS)?, content })
    }

    /// A photograph of any size, its longer side brought to 128 pixels, on a canvas of 256.
    pub fn photograph(image: &Image) -> Result<Self> {
        let longer = image.height().max(image.width()) as f64;
        let side =
            |size: usize| ((size as f64 * PHOTOGRAPH_SIDE as f64 / longer).round() as usize).max(1);
        let content = [side(image.height()), side(image.width())];
        let sized = resize(image, content[0], content[1])?;
        Ok(Self { canvas: sized.padded(PHOTOGRAPH_CANVAS, PHOTOGRAPH_CANVAS)?, content })
    }
}

/// How well the lemma holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lemma {
    /// The part of confident positions whose pose follows the image.
    pub ok: f64,
    /// The part of all compared positions that is confident.
    pub share: f64,
    /// Median error of the angle at confident positions, in degrees.
    pub median_angle_deg: f64,
    /// Median error of ln scale at confident positions.
    pub median_log_scale: f64,
    /// Number of positions compared.
    pub n: usize,
}

/// One position: whether it is confident, and how far its pose is from where it should be.
#[derive(Debug, Clone, Copy)]
struct Trial {
    confident: bool,
    log_scale: f64,
    angle_deg: f64,
}

/// Measures the lemma on images, each transformed once about its centre.
pub fn lemma(
    estimator: &PoseEstimator,
    subjects: &[LemmaSubject],
    protocol: &LemmaProtocol,
) -> Result<Lemma> {
    let task = Task::new("measuring pose equivariance", subjects.len());
    let trials: Vec<Vec<Trial>> = subjects
        .par_iter()
        .enumerate()
        .map(|(i, subject)| trials(estimator, subject, protocol, i as u64))
        .inspect(|_| task.advance(1))
        .collect::<Result<_>>()?;
    Ok(summary(&trials.concat()))
}

fn trials(
    estimator: &PoseEstimator,
    LemmaSubject { canvas, content }: &LemmaSubject,
    protocol: &LemmaProtocol,
    index: u64,
) -> Result<Vec<Trial>> {
    let (height, width) = (canvas.height(), canvas.width());
    let mut random = ChaCha8Rng::seed_from_u64(protocol.seed);
    random.set_stream(index);
    let scale = random.random_range(protocol.scales.clone());
    let transform = Similarity::new(scale, random.random_range(0.0..TAU), [0.0; 2])?;

    let grey = Image::new(height, width, 1, canvas.luminance())?;
    let moved = warp(&grey, &transform, About::Centre, Interpolation::Bilinear);
    let images = Images::new(grey.data(), 1, height, width, 1).map_err(sren::Error::from)?;
    let field = estimator.field(&images, &Grid::pixels(height, width))?;
    let poses = field.poses();

    let (top, left) = ((height - content[0]) / 2, (width - content[1]) / 2);
    let candidates: Vec<[usize; 2]> = (top..top + content[0])
        .flat_map(|y| (left..left + content[1]).map(move |x| [x, y]))
        .filter(|[x, y]| grey.data()[y * width + x] >= protocol.min_luminance)
        .collect();
    let full = transform.about(canvas.centre());
    let count = if candidates.is_empty() { 0 } else { protocol.positions };
    Ok((0..count)
        .map(|_| {
            let [x, y] = candidates[random.random_range(0..candidates.len())];
            let at = y * width + x;
            let (readings, _) =
                read_pose(estimator.spec(), &moved, full.apply([x as f64, y as f64]));
            let expected_scale = f64::from(field.scale()[at * poses]) * scale;
            let expected_angle = f64::from(field.angle()[at * poses]) + transform.angle();
            Trial {
                confident: field.confidence()[at] > 0.0,
                log_scale: (readings[0].pose.scale / expected_scale).ln().abs(),
                angle_deg: wrap_angle(readings[0].pose.angle - expected_angle).abs().to_degrees(),
            }
        })
        .collect())
}

fn summary(trials: &[Trial]) -> Lemma {
    let confident: Vec<&Trial> = trials.iter().filter(|t| t.confident).collect();
    let follows =
        |t: &&&Trial| t.angle_deg < ANGLE_TOLERANCE_DEG && t.log_scale < LOG_SCALE_TOLERANCE;
    let part = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    Lemma {
        ok: part(confident.iter().filter(follows).count(), confident.len()),
        share: part(confident.len(), trials.len()),
        median_angle_deg: median(confident.iter().map(|t| t.angle_deg).collect()),
        median_log_scale: median(confident.iter().map(|t| t.log_scale).collect()),
        n: trials.len(),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
