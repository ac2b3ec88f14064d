//! The local frames of a batch of images, as the layers of a network share them.
//!
//! ```text
//! images -> pose field of each grid -> Frames -> tap tables -> layers
//! ```
//! A pose field is estimated when a layer first needs its grid; a tap table is built when a layer
//! first needs it. Both are shared by all layers that need the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::{Device, Tensor, TensorData};
use sren_kernels::taps::active_positions;
use sren_kernels::{PoseField, TapTable};
use sren_math::Grid;

use super::estimator::{ImageBatch, PoseEstimator};
use super::group::Equivariance;
use crate::error::{Error, Result};
use crate::layers::Mask;

const OPERATION: &str = "Frames";

/// The frames of one batch: scale, angle and gate at every position of every grid that a network
/// computes on. Made by [`PoseEstimator::frames`].
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sren::{Equivariance, Grid, PoseEstimatorConfig};
///
/// let images = Tensor::<4>::random([1, 32, 32, 1], Distribution::Default, &Device::flex());
/// let poses = PoseEstimatorConfig::new().init()?;
/// let frames = poses.frames(&images, Equivariance::Similarity)?;
/// let field = frames.field(&Grid::pixels(32, 32))?;
/// assert_eq!(field.angle().len(), 32 * 32);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Debug)]
pub struct Frames {
    group: Equivariance,
    active_only: bool,
    batch: usize,
    source: Source,
    fields: Mutex<Vec<Arc<PoseField>>>,
    tables: Mutex<Vec<(TapsKey, TapTable)>>,
    masks: Mutex<Vec<(Grid, Mask)>>,
}

/// Where the pose field of a grid comes from that is not there yet.
#[derive(Debug)]
enum Source {
    /// Nowhere: the fields are given.
    Given,
    /// Every pose is the identity.
    Identity,
    /// Estimated from the images.
    Images(Box<PoseEstimator>, ImageBatch),
}

/// The taps of a layer. They lie `dilation Lambda / reference_scale` steps of its input grid apart,
/// or `dilation` steps where the group does not include scale: a pose of the reference scale has the
/// spacing of a plain convolution.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TapLayout {
    /// Taps along one side of the kernel, odd.
    pub kernel_size: usize,
    /// Distance of neighbouring taps for a pose of the reference scale, in steps of the input grid.
    pub dilation: usize,
    /// The reference scale, in pixels.
    pub reference_scale: f64,
    /// Whether the kernel depends on the angle between the frames of the two positions: the pose field
    /// of the input grid is needed then.
    pub relative_pose: bool,
    /// Whether the input is gated by the same frames. Where only active positions are computed,
    /// samples that read none of them are then skipped.
    pub gated_input: bool,
}

impl TapLayout {
    /// Taps one grid step apart for a pose of scale 1.
    pub fn new(kernel_size: usize) -> Self {
        let (dilation, reference_scale) = (1, 1.0);
        Self { kernel_size, dilation, reference_scale, relative_pose: false, gated_input: false }
    }

    /// Distance of neighbouring taps for a pose of scale 1.
    pub(crate) fn kappa(self, group: Equivariance) -> f32 {
        let reference = if group.includes_scale() { self.reference_scale } else { 1.0 };
        (self.dilation as f64 / reference) as f32
    }
}

/// Input grid, output grid and layout: everything but the poses that determines a tap table.
type TapsKey = (Grid, Grid, TapLayout);

impl Frames {
    /// Frames from the pose fields of one batch, one for each grid, restricted to `group`.
    pub fn new(fields: Vec<PoseField>, group: Equivariance) -> Result<Self> {
        let Some(first) = fields.first() else {
            return Err(Error::shape(OPERATION, "at least 1 pose field", "none"));
        };
        let batch = first.batch();
        for (index, field) in fields.iter().enumerate() {
            if field.batch() != batch {
                let expected = format!("pose fields of {batch} images");
                return Err(Error::shape(OPERATION, expected, field.batch().to_string()));
            }
            if fields[..index].iter().any(|other| other.grid() == field.grid()) {
                let got = format!("two on {:?}", field.grid());
                return Err(Error::shape(OPERATION, "one pose field for each grid", got));
            }
        }
        let restrict = |field| group.restrict(field).map(Arc::new);
        let fields = fields.into_iter().map(restrict).collect::<Result<_>>()?;
        Ok(Self { fields: Mutex::new(fields), ..Self::from_source(Source::Given, batch, group) })
    }

    /// Frames of a plain CNN for `batch` images: every pose is the identity.
    pub fn plain(batch: usize) -> Self {
        Self::from_source(Source::Identity, batch, Equivariance::None)
    }

    /// Frames that `estimator` reads from `images`.
    pub(super) fn estimated(
        estimator: PoseEstimator,
        images: ImageBatch,
        group: Equivariance,
    ) -> Self {
        let batch = images.batch();
        Self::from_source(Source::Images(Box::new(estimator), images), batch, group)
    }

    fn from_source(source: Source, batch: usize, group: Equivariance) -> Self {
        Self {
            group,
            active_only: false,
            batch,
            source,
            fields: Mutex::default(),
            tables: Mutex::default(),
            masks: Mutex::default(),
        }
    }

    /// Whether layers compute only at positions of confidence > 0 and give exact zeros elsewhere.
    pub fn with_active_only(mut self, active_only: bool) -> Self {
        self.active_only = active_only;
        (self.tables, self.masks) = (Mutex::default(), Mutex::default());
        self
    }

    /// Whether layers compute only at positions of confidence > 0.
    pub fn active_only(&self) -> bool {
        self.active_only
    }

    /// Number of images.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The equivariance group.
    pub fn equivariance(&self) -> Equivariance {
        self.group
    }

    /// The pose field on `grid`. Returns an error if the frames were made from fields and none is on
    /// this grid.
    pub fn field(&self, grid: &Grid) -> Result<Arc<PoseField>> {
        let known =
            |fields: &[Arc<PoseField>]| fields.iter().find(|field| field.grid() == grid).cloned();
        if let Some(field) = known(&lock(&self.fields)) {
            return Ok(field);
        }
        // Estimated without the lock: a thread of the pool that waits for it may take up other work
        // that needs the same field.
        let field = match &self.source {
            Source::Given => {
                let grids: Vec<_> = lock(&self.fields).iter().map(|field| *field.grid()).collect();
                let (expected, got) = (format!("one of {grids:?}"), format!("{grid:?}"));
                return Err(Error::shape("Frames::field", expected, got));
            }
            Source::Identity => PoseField::identity(*grid, self.batch)?,
            Source::Images(estimator, images) => {
                self.group.restrict(estimator.field(&images.view()?, grid)?)?
            }
        };
        let mut fields = lock(&self.fields);
        if let Some(field) = known(&fields) {
            return Ok(field);
        }
        let field = Arc::new(field);
        fields.push(field.clone());
        Ok(field)
    }

    /// The confidence on `grid` as a gate `[n, h, w, 1]` to multiply features with.
    pub fn gate(&self, grid: &Grid, device: &Device) -> Result<Tensor<4>> {
        let field = self.field(grid)?;
        let shape = [field.batch(), grid.height, grid.width, 1];
        Ok(Tensor::from_data(TensorData::new(field.confidence().to_vec(), shape), device))
    }

    /// The positions of `grid` that count and, unless it is open everywhere, their gate.
    pub fn mask(&self, grid: &Grid) -> Result<Mask> {
        if let Some((_, mask)) = lock(&self.masks).iter().find(|(known, _)| known == grid) {
            return Ok(mask.clone());
        }
        let field = self.field(grid)?;
        let open = field.confidence().iter().all(|confidence| *confidence == 1.0);
        let mask = Mask {
            active: self.active_only.then(|| active_positions(&field)),
            gate: (!open).then(|| field.confidence().into()),
        };
        lock(&self.masks).push((*grid, mask.clone()));
        Ok(mask)
    }

    /// The taps of a layer that reads `input` and writes `output`.
    pub fn taps(&self, input: &Grid, output: &Grid, layout: TapLayout) -> Result<TapTable> {
        let key = (*input, *output, layout);
        if let Some((_, table)) = lock(&self.tables).iter().find(|(known, _)| *known == key) {
            return Ok(table.clone());
        }
        let (field, kappa) = (self.field(output)?, layout.kappa(self.group));
        let mut table = TapTable::new(&field, input, layout.kernel_size, kappa, self.active_only)?;
        if layout.relative_pose {
            table = table.with_input_poses(&*self.field(input)?)?;
        }
        if layout.gated_input
            && let Some(active) = self.mask(input)?.active
        {
            table = table.with_active_input(&active)?;
        }
        lock(&self.tables).push((key, table.clone()));
        Ok(table)
    }
}

/// A cache stays valid if a thread panicked while it held the lock: entries are added whole.
fn lock<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
