//! The pose estimator as the first stage of a network: from a batch of images to [`Frames`].

use std::sync::{Arc, Mutex};

use burn::config::Config;
use burn::tensor::Tensor;
use sren_kernels::pose::{Images, PosePlan};
use sren_kernels::{KernelError, PoseField};
use sren_math::{Gate, Grid, PoseParams, PoseSpec, PoseTemplate, Ramp};

use super::frames::Frames;
use super::group::Equivariance;
use crate::error::{Error, Result};

/// Configuration of a [`PoseEstimator`]. Lengths are in pixels of the image; the defaults suit
/// digits of 56 and photographs of 64 to 128 pixels.
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct PoseEstimatorConfig {
    /// Inner radius a of the neighbourhood that is read.
    #[config(default = 0.25)]
    pub inner: f64,
    /// Outer radius b.
    #[config(default = 34.0)]
    pub outer: f64,
    /// Smallest scale that is tried.
    #[config(default = 0.6)]
    pub min_scale: f64,
    /// Largest scale that is tried.
    #[config(default = 19.0)]
    pub max_scale: f64,
    /// Number of rings between a and b.
    #[config(default = 32)]
    pub rings: usize,
    /// Number of scales tried.
    #[config(default = 28)]
    pub scales: usize,
    /// Width of the template in ln r.
    #[config(default = 0.4)]
    pub tau: f64,
    /// Scale weight of the template; 2 is the paper's literal form.
    #[config(default = -0.25)]
    pub q: f64,
    /// Number J of best poses per position.
    #[config(default = 1)]
    pub poses: usize,
    /// Exponent p of their weights.
    #[config(default = 6.0)]
    pub sharpness: f64,
    /// Ramp of the gate on prominence, from 0 to 1.
    #[config(default = "[0.07, 0.2]")]
    pub prominence: [f64; 2],
    /// Ramp of the gate on the lead over other peaks.
    #[config(default = "[0.08, 0.2]")]
    pub lead: [f64; 2],
    /// Ramp of the gate on contrast.
    #[config(default = "[0.01, 0.04]")]
    pub contrast: [f64; 2],
}

impl PoseEstimatorConfig {
    /// The same for images `factor` times as large: the largest scale grows by `factor`, sampled as
    /// finely as before. The smallest stays: pixels do not grow.
    pub fn enlarged(&self, factor: f64) -> Self {
        let more = |count: usize, [low, high]: [f64; 2]| {
            let part = (factor * high / low).ln() / (high / low).ln();
            (count as f64 * part).round() as usize
        };
        let range = [self.min_scale, self.max_scale];
        self.clone()
            .with_rings(more(self.rings, [self.inner, self.outer]))
            .with_scales(more(self.scales, range))
            .with_outer(factor * self.outer)
            .with_max_scale(factor * self.max_scale)
    }

    /// The estimator, its parameters checked.
    pub fn init(&self) -> Result<PoseEstimator> {
        let ramp = |[low, high]: [f64; 2]| Ramp { low, high };
        PoseEstimator::new(PoseParams {
            inner: self.inner,
            outer: self.outer,
            min_scale: self.min_scale,
            max_scale: self.max_scale,
            rings: self.rings,
            scales: self.scales,
            template: PoseTemplate { tau: self.tau, q: self.q, ..PoseTemplate::default() },
            poses: self.poses,
            sharpness: self.sharpness,
            gate: Gate {
                prominence: ramp(self.prominence),
                lead: ramp(self.lead),
                contrast: ramp(self.contrast),
            },
            ..PoseParams::default()
        })
    }
}

/// Plans that are kept: more grids than a network has.
const MAX_PLANS: usize = 16;

/// Estimates a local scale and orientation at every position of a grid. It has no parameters to
/// learn, and no gradient flows through it. Cheap to clone; plans of grids are cached and shared.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sren::{Grid, PoseEstimatorConfig};
///
/// let images = Tensor::<4>::random([1, 40, 40, 1], Distribution::Default, &Device::flex());
/// let poses = PoseEstimatorConfig::new().init()?;
/// let every_second_pixel = Grid::pixels(40, 40).cell_centred(2)?;
/// let field = &poses.fields(&images, &[every_second_pixel])?[0];
/// assert!(field.scale().iter().all(|scale| *scale > 0.0));
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PoseEstimator {
    spec: PoseSpec,
    plans: Arc<Mutex<Vec<Arc<PosePlan>>>>,
}

impl PoseEstimator {
    /// An estimator with any parameters of the mathematics.
    pub fn new(params: PoseParams) -> Result<Self> {
        Ok(Self { spec: PoseSpec::new(params)?, plans: Arc::default() })
    }

    /// The checked parameters.
    pub fn spec(&self) -> &PoseSpec {
        &self.spec
    }

    /// The pose field of images `[n, h, w, c]` on `grid`.
    pub fn field(&self, images: &Images, grid: &Grid) -> Result<PoseField> {
        Ok(self.plan(grid)?.estimate(images)?)
    }

    /// The frames of images `[n, h, w, c]`, channels last. Each grid's poses are estimated when a
    /// layer first needs them; with [`Equivariance::None`] nothing is estimated.
    pub fn frames(&self, images: &Tensor<4>, group: Equivariance) -> Result<Frames> {
        if group == Equivariance::None {
            return Ok(Frames::plain(images.dims()[0]));
        }
        Ok(Frames::estimated(self.clone(), ImageBatch::read(images)?, group))
    }

    /// The pose fields of images `[n, h, w, c]` on each of `grids`.
    pub fn fields(&self, images: &Tensor<4>, grids: &[Grid]) -> Result<Vec<PoseField>> {
        let images = ImageBatch::read(images)?;
        let images = images.view()?;
        grids.iter().map(|grid| self.field(&images, grid)).collect()
    }

    /// The precomputed plan for `grid`, cached.
    fn plan(&self, grid: &Grid) -> Result<Arc<PosePlan>, KernelError> {
        let mut plans = self.plans.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(plan) = plans.iter().find(|plan| plan.grid() == grid) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(PosePlan::new(self.spec.clone(), *grid)?);
        if plans.len() == MAX_PLANS {
            plans.remove(0);
        }
        plans.push(plan.clone());
        Ok(plan)
    }
}

/// The pixels of a batch of images, read from a tensor.
#[derive(Debug)]
pub(super) struct ImageBatch {
    pixels: Vec<f32>,
    shape: [usize; 4],
}

impl ImageBatch {
    fn read(images: &Tensor<4>) -> Result<Self> {
        let pixels = images
            .to_data()
            .try_into_vec::<f32>()
            .map_err(|e| Error::shape("PoseEstimator", "images of f32", format!("{e:?}")))?;
        let batch = Self { pixels, shape: images.dims() };
        batch.view()?;
        Ok(batch)
    }

    pub(super) fn batch(&self) -> usize {
        self.shape[0]
    }

    pub(super) fn view(&self) -> Result<Images<'_>> {
        let [n, h, w, c] = self.shape;
        Ok(Images::new(&self.pixels, n, h, w, c)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_mathematics() {
        let estimator = PoseEstimatorConfig::new().init().unwrap();
        assert_eq!(estimator.spec.params(), &PoseParams::default());
    }

    #[test]
    fn impossible_parameters_are_named() {
        let error = PoseEstimatorConfig::new().with_outer(0.1).init().unwrap_err();
        assert!(error.to_string().contains("a = 0.25, b = 0.1"), "{error}");
    }
}
