//! The local frames of a batch of images, as the layers of a network share them.
//!
//! ```text
//! image batch -> pose field of every grid in the network -> Frames -> tap tables -> layers
//! ```
//! A tap table is built when a layer first asks for it and shared by all that ask for the same.

use std::sync::Mutex;

use burn::tensor::{Device, Tensor, TensorData};
use sren_kernels::taps::active_positions;
use sren_kernels::{PoseField, TapTable};
use sren_math::Grid;

use crate::equivariance::Equivariance;
use crate::error::{Error, Result};
use crate::norm::Mask;

/// The frames of one batch: a pose field for each grid the network computes on, and the tap tables
/// made from them so far. Networks with fine and coarse frames hold two of these.
#[derive(Debug)]
pub struct Frames {
    equivariance: Equivariance,
    active_only: bool,
    fields: Vec<PoseField>,
    tables: Mutex<Vec<(TapsKey, TapTable)>>,
    masks: Mutex<Vec<(Grid, Mask)>>,
}

/// What decides a tap table, but for the poses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TapsKey {
    input: Grid,
    output: Grid,
    kernel_size: usize,
    kappa: f32,
    relative_pose: bool,
}

impl Frames {
    /// Frames from the pose fields of one batch, one for each grid. What `equivariance` does not
    /// follow is frozen.
    pub fn new(fields: Vec<PoseField>, equivariance: Equivariance) -> Result<Self> {
        const OPERATION: &str = "Frames";
        let Some(first) = fields.first() else {
            return Err(Error::shape(OPERATION, "at least 1 pose field", "none"));
        };
        for (index, field) in fields.iter().enumerate() {
            if field.batch() != first.batch() {
                let expected = format!("pose fields of {} images", first.batch());
                return Err(Error::shape(OPERATION, expected, field.batch().to_string()));
            }
            if fields[..index].iter().any(|other| other.grid() == field.grid()) {
                let got = format!("two on {:?}", field.grid());
                return Err(Error::shape(OPERATION, "one pose field for each grid", got));
            }
        }
        let freeze = |field| equivariance.freeze(field);
        let fields = fields.into_iter().map(freeze).collect::<Result<_>>()?;
        Ok(Self {
            equivariance,
            active_only: false,
            fields,
            tables: Mutex::default(),
            masks: Mutex::default(),
        })
    }

    /// Frames of a plain CNN for `batch` images: nothing is followed.
    pub fn plain(grids: &[Grid], batch: usize) -> Result<Self> {
        let identity = |grid: &Grid| PoseField::identity(*grid, batch);
        let fields = grids.iter().map(identity).collect::<std::result::Result<_, _>>()?;
        Self::new(fields, Equivariance::None)
    }

    /// Whether layers compute only at positions of confidence > 0 and give exact zeros elsewhere.
    pub fn with_active_only(mut self, active_only: bool) -> Self {
        self.active_only = active_only;
        (self.tables, self.masks) = (Mutex::default(), Mutex::default());
        self
    }

    /// Number of images.
    pub fn batch(&self) -> usize {
        self.fields.first().map_or(0, PoseField::batch)
    }

    /// What is followed.
    pub fn equivariance(&self) -> Equivariance {
        self.equivariance
    }

    /// The pose field on `grid`.
    pub fn field(&self, grid: &Grid) -> Result<&PoseField> {
        self.fields.iter().find(|field| field.grid() == grid).ok_or_else(|| {
            let grids: Vec<_> = self.fields.iter().map(PoseField::grid).collect();
            Error::shape("Frames::field", format!("one of {grids:?}"), format!("{grid:?}"))
        })
    }

    /// The confidence on `grid` as a gate `[n, h, w, 1]` to multiply features with.
    pub fn gate(&self, grid: &Grid, device: &Device) -> Result<Tensor<4>> {
        let field = self.field(grid)?;
        let shape = [field.batch(), grid.height, grid.width, 1];
        Ok(Tensor::from_data(TensorData::new(field.confidence().to_vec(), shape), device))
    }

    /// The positions of `grid` that count and, unless it is open everywhere, their gate.
    pub fn mask(&self, grid: &Grid) -> Result<Mask> {
        let mut masks = self.masks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, mask)) = masks.iter().find(|(known, _)| known == grid) {
            return Ok(mask.clone());
        }
        let field = self.field(grid)?;
        let open = field.confidence().iter().all(|confidence| *confidence == 1.0);
        let mask = Mask {
            active: self.active_only.then(|| active_positions(field)),
            gate: (!open).then(|| field.confidence().into()),
        };
        masks.push((*grid, mask.clone()));
        Ok(mask)
    }

    /// The taps of a layer that reads `input` and writes `output`. A relative-pose kernel needs
    /// the pose field of `input` too.
    pub fn taps(
        &self,
        input: &Grid,
        output: &Grid,
        kernel_size: usize,
        kappa: f32,
        relative_pose: bool,
    ) -> Result<TapTable> {
        let kappa = if self.equivariance.follows_scale() { kappa } else { 1.0 };
        let key = TapsKey { input: *input, output: *output, kernel_size, kappa, relative_pose };
        let mut tables = self.tables.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, table)) = tables.iter().find(|(known, _)| *known == key) {
            return Ok(table.clone());
        }
        let field = self.field(output)?;
        let mut table = TapTable::new(field, input, kernel_size, kappa, self.active_only)?;
        if relative_pose {
            table = table.with_input_poses(self.field(input)?)?;
        }
        tables.push((key, table.clone()));
        Ok(table)
    }
}
