//! Local frames, and their estimation from the angular harmonics around a point.
//!
//! With `F_k(rho) = 1/(2 pi) int f(x + e^rho e^(i theta)) e^(-i k theta) dtheta` the harmonics on
//! the ring of radius e^rho, the response of the template at scale lambda is
//! `G_k(lambda) = lambda^q sum_rho g(rho - ln lambda) F_k(rho)`, its score over all angles
//! `S(lambda) = max_gamma sum_k a_k Re(e^(i k gamma) G_k(lambda))`. For one harmonic k = 1 this is
//! `|G_1|`, reached at `gamma = -arg G_1`. The pose is the highest interior maximum of S.

use std::f64::consts::{PI, TAU};

use num_complex::Complex64;

use crate::error::{MathError, Result};
use crate::fourier_argand::Annulus;
use crate::peaks::{Peak, interior_peaks, prominence};
use crate::similarity::wrap_angle;
use crate::template::PoseTemplate;

/// A local frame: `M = scale * R(angle)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Size of the local structure in pixels.
    pub scale: f64,
    /// Direction from its dark to its bright side, radians from the x axis towards the y axis.
    pub angle: f64,
}

impl Pose {
    /// The frame of the pixel grid itself.
    pub const IDENTITY: Self = Self { scale: 1.0, angle: 0.0 };
}

/// A smooth threshold: 0 up to `low`, 1 from `high`, smoothstep between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// Where it leaves 0.
    pub low: f64,
    /// Where it reaches 1.
    pub high: f64,
}

impl Ramp {
    /// The value of the ramp at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let t = ((x - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        t * t * (3.0 - 2.0 * t)
    }
}

/// The confidence of a pose: the product of three ramps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// On the prominence of the peak (0..1, independent of contrast).
    pub prominence: Ramp,
    /// On its lead `1 - runner-up / peak` over other peaks and the ends of the range (0..1,
    /// independent of contrast).
    pub lead: Ramp,
    /// On the contrast, in units of a straight edge of height 1.
    pub contrast: Ramp,
}

/// The parameters of the pose estimator; lengths in pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseParams {
    /// Inner radius a of the neighbourhood.
    pub inner: f64,
    /// Outer radius b.
    pub outer: f64,
    /// Smallest scale lambda of the search.
    pub min_scale: f64,
    /// Largest scale lambda of the search.
    pub max_scale: f64,
    /// Number of rings between a and b, uniform in ln r, 4 to 1024.
    pub rings: usize,
    /// Number of scales of the search, uniform in ln lambda, 3 to 1024.
    pub scales: usize,
    /// Largest distance between neighbouring samples on a ring.
    pub spacing: f64,
    /// Most samples on one ring, 8 to 65536.
    pub max_samples: usize,
    /// The template.
    pub template: PoseTemplate,
    /// Number J of best poses per position, 1 to 1024.
    pub poses: usize,
    /// Exponent p of their weights `(S_j / S_max)^p`.
    pub sharpness: f64,
    /// Confidence of a pose.
    pub gate: Gate,
}

impl Default for PoseParams {
    /// One set for digits and photographs, tuned on training images.
    fn default() -> Self {
        Self {
            inner: 0.25,
            outer: 34.0,
            min_scale: 0.6,
            max_scale: 19.0,
            rings: 32,
            scales: 28,
            spacing: 1.0,
            max_samples: 48,
            template: PoseTemplate::default(),
            poses: 1,
            sharpness: 6.0,
            gate: Gate {
                prominence: Ramp { low: 0.07, high: 0.2 },
                lead: Ramp { low: 0.08, high: 0.2 },
                contrast: Ramp { low: 0.01, high: 0.04 },
            },
        }
    }
}

/// A ring of the neighbourhood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ring {
    /// Its radius.
    pub radius: f64,
    /// Number of samples on it, at `theta = 2 pi (i + 1/2) / samples`; a multiple of 4, so that
    /// 90-degree rotations map them onto each other.
    pub samples: usize,
}

impl Ring {
    /// The offsets of the samples and their angles.
    pub fn points(&self) -> impl Iterator<Item = ([f64; 2], f64)> + '_ {
        (0..self.samples).map(|i| {
            let theta = TAU * (i as f64 + 0.5) / self.samples as f64;
            let (sin, cos) = theta.sin_cos();
            ([self.radius * cos, self.radius * sin], theta)
        })
    }
}

/// Checked parameters and the quantities derived from them.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseSpec {
    params: PoseParams,
    rings: Vec<Ring>,
    scales: Vec<f64>,
    weights: Vec<f64>,
}

impl PoseSpec {
    /// Checks the parameters. Returns an error that names the first one out of range.
    pub fn new(params: PoseParams) -> Result<Self> {
        const OPERATION: &str = "PoseParams";
        let invalid = |expected: &str, got: String| Err(MathError::new(OPERATION, expected, got));
        let annulus = Annulus::new(params.inner, params.outer)?;
        params.template.check()?;
        let (low, high) = (params.min_scale, params.max_scale);
        if !(low >= params.inner && low < high && high <= params.outer) {
            return invalid(
                "a scale range with a <= min_scale < max_scale <= b",
                format!("{low} .. {high} for a = {}, b = {}", params.inner, params.outer),
            );
        }
        if !(4..=MAX_COUNT).contains(&params.rings) || !(3..=MAX_COUNT).contains(&params.scales) {
            return invalid(
                "at least 4 rings and 3 scales, at most 1024 of each",
                format!("{} rings, {} scales", params.rings, params.scales),
            );
        }
        if params.spacing.is_nan()
            || params.spacing <= 0.0
            || !(8..=MAX_SAMPLES).contains(&params.max_samples)
        {
            return invalid(
                "a sample spacing > 0 and 8 to 65536 samples per ring",
                format!("spacing {}, {} samples", params.spacing, params.max_samples),
            );
        }
        let sharp = params.sharpness >= 0.0 && params.sharpness.is_finite();
        if !(sharp && (1..=MAX_COUNT).contains(&params.poses)) {
            return invalid(
                "at least 1 pose, at most 1024, and a finite sharpness >= 0",
                format!("{} poses, sharpness {}", params.poses, params.sharpness),
            );
        }
        for ramp in [params.gate.prominence, params.gate.lead, params.gate.contrast] {
            if !(ramp.low >= 0.0 && ramp.low < ramp.high) {
                return invalid("gate ramps with 0 <= low < high", format!("{ramp:?}"));
            }
        }

        let step = annulus.period() / params.rings as f64;
        let rings: Vec<Ring> = (0..params.rings)
            .map(|i| {
                let radius = params.inner * (step * (i as f64 + 0.5)).exp();
                let samples = (TAU * radius / params.spacing).min(params.max_samples as f64);
                Ring { radius, samples: (samples / 4.0).ceil().max(2.0) as usize * 4 }
            })
            .collect();
        let log_range = (high / low).ln();
        let scales: Vec<f64> = (0..params.scales)
            .map(|j| low * (log_range * j as f64 / (params.scales - 1) as f64).exp())
            .collect();
        // A straight edge of height 1 has F_1 = 1/pi on every ring: its contrast is then 1.
        let unit = PI * step / (params.template.tau * TAU.sqrt());
        let weights = scales
            .iter()
            .flat_map(|scale| {
                let (template, rings) = (&params.template, &rings);
                rings.iter().map(move |ring| {
                    let delta = (ring.radius / scale).ln();
                    unit * scale.powf(template.q) * template.radial(delta, &annulus)
                })
            })
            .collect();
        Ok(Self { params, rings, scales, weights })
    }

    /// The parameters.
    pub fn params(&self) -> &PoseParams {
        &self.params
    }

    /// The rings, innermost first.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The scales lambda of the search, smallest first.
    pub fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// The matrix from ring harmonics to responses, `[scales, rings]`.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The highest score over all angles and its angle, for responses `G_k`, one per harmonic of the
    /// template.
    pub fn best_angle(&self, responses: &[Complex64]) -> (f64, f64) {
        let terms = &self.params.template.angular;
        if let ([(k, a)], [g]) = (terms.as_slice(), responses) {
            let g = g * *a;
            return (g.norm(), -g.arg() / f64::from(*k));
        }
        let score = |gamma: f64| -> f64 {
            let term = |((k, a), g): (&(u32, f64), &Complex64)| {
                a * (Complex64::cis(f64::from(*k) * gamma) * g).re
            };
            terms.iter().zip(responses).map(term).sum()
        };
        let highest = terms.iter().map(|(k, _)| *k).max().unwrap_or(1);
        let count = 16 * highest as usize;
        let step = TAU / count as f64;
        let scores: Vec<f64> = (0..count).map(|i| score(i as f64 * step)).collect();
        let best = (0..count).fold(0, |b, i| if scores[i] > scores[b] { i } else { b });
        let [left, middle, right] =
            [scores[(best + count - 1) % count], scores[best], scores[(best + 1) % count]];
        let bend = 2.0 * middle - left - right;
        let offset = if bend > 0.0 { 0.5 * (right - left) / bend } else { 0.0 };
        let gamma = (best as f64 + offset) * step;
        (score(gamma), wrap_angle(gamma))
    }

    /// Estimates the poses of a point. `scores` are S(lambda) for every scale, `responses(j)` the
    /// `G_k(lambda_j)`. Writes the best poses to `out`, with weights of sum 1, and returns the
    /// confidence in 0..=1; where there is no pose, it is 0 and the poses are the identity.
    pub fn read(
        &self,
        scores: &[f32],
        responses: impl Fn(usize, &mut [Complex64]),
        out: &mut [PoseReading],
        scratch: &mut Vec<Peak>,
    ) -> f64 {
        out.fill(PoseReading { pose: Pose::IDENTITY, weight: 0.0 });
        if let Some(first) = out.first_mut() {
            first.weight = 1.0;
        }
        interior_peaks(scores, out.len().max(2), scratch);
        let Some(best) = scratch.first() else { return 0.0 };
        if best.height <= 0.0 {
            return 0.0;
        }

        let params = &self.params;
        let scale_of = |peak: &Peak| {
            let log_range = (params.max_scale / params.min_scale).ln();
            params.min_scale * (log_range * peak.location / (self.scales.len() - 1) as f64).exp()
        };
        let mut total = 0.0;
        let mut terms = [[Complex64::ZERO; MAX_TERMS]; 3];
        let count = params.template.angular.len().min(MAX_TERMS);
        for (reading, peak) in out.iter_mut().zip(scratch.iter()) {
            for (j, g) in terms.iter_mut().enumerate() {
                responses(peak.index - 1 + j, &mut g[..count]);
            }
            let weights = peak.lagrange();
            let mut refined = [Complex64::ZERO; MAX_TERMS];
            for (k, g) in refined[..count].iter_mut().enumerate() {
                *g = (0..3).map(|j| terms[j][k] * weights[j]).sum();
            }
            let (_, angle) = self.best_angle(&refined[..count]);
            let weight = (peak.height / best.height).powf(params.sharpness);
            *reading = PoseReading { pose: Pose { scale: scale_of(peak), angle }, weight };
            total += weight;
        }
        out.iter_mut().for_each(|reading| reading.weight /= total);

        let ends = f64::from(scores[0].max(scores[scores.len() - 1]));
        let runner_up = scratch.get(1).map_or(0.0, |peak| peak.height).max(ends);
        let contrast = best.height * scale_of(best).powf(-params.template.q);
        params.gate.prominence.at(prominence(scores, best.index, best.height))
            * params.gate.lead.at(1.0 - runner_up / best.height)
            * params.gate.contrast.at(contrast)
    }
}

/// Most rings, scales and poses: arrays of them stay far from the limits of memory.
const MAX_COUNT: usize = 1024;

/// Most samples on a ring.
const MAX_SAMPLES: usize = 1 << 16;

/// Most angular harmonics of a template.
pub(crate) const MAX_TERMS: usize = 8;

/// A pose with its weight among those of the same point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoseReading {
    /// The local frame.
    pub pose: Pose,
    /// Its weight; the weights of a point have sum 1.
    pub weight: f64,
}
