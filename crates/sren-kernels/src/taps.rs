//! The sampling locations of a similarity convolution: the taps of every output position.
//!
//! The output position at image point p reads tap t = (tx, ty) of the `k x k` kernel, counted from
//! its centre, at the location
//! ```text
//! (p - input.origin) / input.step + kappa * Lambda * R(Gamma) * t
//! ```
//! in index coordinates of the input grid: bilinear interpolation, zero outside. Tap offsets are in
//! units of the input's step, so that `kappa * Lambda = 1`, `Gamma = 0` is the plain convolution in
//! any stage.
//!
//! The table stores direction, spacing and weight per position and pose (16 bytes), not the four
//! indices and weights per tap (32 bytes): a few instructions compute these in less time than reading
//! them from memory takes.

use std::sync::Arc;

use num_complex::Complex32;
use rayon::prelude::*;
use sren_math::Grid;

use crate::error::{KernelError, Result};
use crate::pose::PoseField;

/// The poses of all positions as a structure of arrays: the direction of Gamma, the distance
/// `kappa * Lambda` between neighbouring taps, and the weight of the pose.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) cos: Vec<f32>,
    pub(crate) sin: Vec<f32>,
    pub(crate) spacing: Vec<f32>,
    pub(crate) weight: Vec<f32>,
}

/// Coordinates along one axis of the input grid: integer cells, stored as floats, and fractions in
/// 0..1. They are separate so that the fraction, and with it every interpolation weight, does not
/// depend on the distance from the origin: translation by whole cells is exact.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) cell: Vec<f32>,
    pub(crate) fraction: Vec<f32>,
}

#[derive(Debug)]
struct Table {
    batch: usize,
    poses: usize,
    kernel_size: usize,
    input: Grid,
    output: Grid,
    columns: Axis,
    rows: Axis,
    /// `[batch, height, width, poses]`, or one that all positions share.
    frames: Frames,
    /// Whether every position reads exactly its own pixel.
    is_copy: bool,
}

/// The taps of every output position of a batch. Built once per pose field, input grid and kernel
/// size; cheap to clone and shared by all layers that use them.
///
/// ```
/// use sren_kernels::{PoseField, TapTable};
/// use sren_math::Grid;
///
/// # fn main() -> sren_kernels::Result<()> {
/// let input = Grid::pixels(8, 8);
/// let field = PoseField::identity(input.cell_centred(2)?, 2)?;
/// let taps = TapTable::new(&field, &input, 3, 1.0, true)?;
/// assert_eq!((taps.batch(), taps.kernel_size(), taps.output_grid().len()), (2, 3, 16));
/// // Every position has confidence 1, so all are active.
/// assert_eq!(taps.active().map(<[u32]>::len), Some(32));
/// assert!(TapTable::new(&field, &input, 4, 1.0, true).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TapTable {
    table: Arc<Table>,
    active: Option<Arc<[u32]>>,
    /// `exp(i Gamma)` at the positions of the input grid, `[batch, height, width]`.
    input_directions: Option<Arc<[Complex32]>>,
    /// Per cell of the input grid, `[batch, height, width]`: 1 if a sample inside it reads an active
    /// position, 0 if it reads zeros only.
    occupied: Option<Arc<[u8]>>,
}

/// Most positions of a batch: they are numbered by 32-bit integers.
const MAX_POSITIONS: usize = i32::MAX as usize;

/// Longest side of a grid: f32 represents every integer up to it.
const MAX_SIDE: usize = 1 << 24;

impl TapTable {
    /// The taps of a convolution from the grid `input` to the grid of `field`. `kernel_size` is
    /// odd, at most 255; `kappa` is the distance between neighbouring taps at scale 1. With
    /// `active_only`, positions of confidence 0 are skipped: their output is exactly zero.
    pub fn new(
        field: &PoseField,
        input: &Grid,
        kernel_size: usize,
        kappa: f32,
        active_only: bool,
    ) -> Result<Self> {
        let output = *field.grid();
        check(field.batch(), input, &output, kernel_size)?;
        if !(kappa.is_finite() && kappa > 0.0) {
            return Err(invalid("a finite kappa > 0", kappa.to_string()));
        }
        let (columns, rows) = axes(&output, input);
        let frames = frames(field, kappa);
        if let Some(spacing) = frames.spacing.iter().find(|spacing| !spacing.is_finite()) {
            return Err(invalid("finite kappa * scale", spacing.to_string()));
        }
        let active = active_only.then(|| active_positions(field));
        let (batch, poses) = (field.batch(), field.poses());
        let single = field.weight().iter().all(|&weight| weight == 1.0);
        let is_copy = kernel_size == 1 && output == *input && single;
        let table = Table {
            batch,
            poses,
            kernel_size,
            input: *input,
            output,
            columns,
            rows,
            frames,
            is_copy,
        };
        Ok(Self { table: Arc::new(table), active, input_directions: None, occupied: None })
    }

    /// The taps of a plain convolution of `batch` images from the grid `input` to the grid `output`.
    pub fn plain(batch: usize, input: &Grid, output: &Grid, kernel_size: usize) -> Result<Self> {
        check(batch, input, output, kernel_size)?;
        let (columns, rows) = axes(output, input);
        let table = Table {
            batch,
            poses: 1,
            kernel_size,
            input: *input,
            output: *output,
            columns,
            rows,
            frames: Frames {
                cos: vec![1.0],
                sin: vec![0.0],
                spacing: vec![1.0],
                weight: vec![1.0],
            },
            is_copy: kernel_size == 1 && output == input,
        };
        Ok(Self { table: Arc::new(table), active: None, input_directions: None, occupied: None })
    }

    /// The same taps with the angles of the pose field on the input grid (the best pose of each
    /// position), which relative-pose kernels need.
    pub fn with_input_poses(mut self, field: &PoseField) -> Result<Self> {
        if field.grid() != self.input_grid() || field.batch() != self.batch() {
            return Err(KernelError::invalid(
                "TapTable::with_input_poses",
                format!("{} images on {:?}", self.batch(), self.input_grid()),
                format!("{} images on {:?}", field.batch(), field.grid()),
            ));
        }
        let best = field.angle().par_chunks_exact(field.poses()).with_min_len(4096);
        let directions: Vec<Complex32> = best.map(|angles| Complex32::cis(angles[0])).collect();
        self.input_directions = Some(directions.into());
        Ok(self)
    }

    /// The same taps for an input that is zero except at the positions `active` of
    /// `[batch, height, width]`: samples that read zeros only are skipped. The output is the same;
    /// the gradient of the input is complete at `active` and not defined elsewhere.
    pub fn with_active_input(mut self, active: &[u32]) -> Result<Self> {
        let Grid { height, width, .. } = *self.input_grid();
        let mut occupied = vec![0; self.batch() * height * width];
        for &position in active {
            let position = position as usize;
            if position >= occupied.len() {
                return Err(KernelError::invalid(
                    "TapTable::with_active_input",
                    format!("positions below {}", occupied.len()),
                    position.to_string(),
                ));
            }
            // The cells that have the position as a corner.
            let left = (position % width).min(1);
            let above = (position / width % height).min(1) * width;
            for cell in [position, position - left, position - above, position - above - left] {
                occupied[cell] = 1;
            }
        }
        self.occupied = Some(occupied.into());
        Ok(self)
    }

    /// Number of images.
    pub fn batch(&self) -> usize {
        self.table.batch
    }

    /// Number of weighted poses per position.
    pub fn poses(&self) -> usize {
        self.table.poses
    }

    /// Number of taps along one side of the kernel.
    pub fn kernel_size(&self) -> usize {
        self.table.kernel_size
    }

    /// The grid of the input.
    pub fn input_grid(&self) -> &Grid {
        &self.table.input
    }

    /// The grid of the output.
    pub fn output_grid(&self) -> &Grid {
        &self.table.output
    }

    /// Whether the table has the input's poses, which relative-pose kernels need.
    pub fn has_input_poses(&self) -> bool {
        self.input_directions.is_some()
    }

    /// Indices of the active positions in `[batch, height, width]`, ascending; `None` if all
    /// positions are computed.
    pub fn active(&self) -> Option<&[u32]> {
        self.active.as_deref()
    }

    /// The active positions as a shared list, for batch norm.
    pub fn shared_active(&self) -> Option<Arc<[u32]>> {
        self.active.clone()
    }

    /// Heap memory of the table in bytes.
    pub fn bytes(&self) -> usize {
        let table = &*self.table;
        let (frames, columns, rows) = (&table.frames, &table.columns, &table.rows);
        4 * size_of_val(&frames.cos[..])
            + 2 * size_of_val(&columns.cell[..])
            + 2 * size_of_val(&rows.cell[..])
            + self.active().map_or(0, size_of_val)
            + self.input_directions().map_or(0, size_of_val)
            + self.occupied().map_or(0, size_of_val)
    }

    /// Whether this is a `1 x 1` kernel from a grid to itself with one pose. Each position reads
    /// exactly its own pixel, so that the input is the panel.
    pub(crate) fn is_copy(&self) -> bool {
        self.table.is_copy
    }

    pub(crate) fn columns(&self) -> &Axis {
        &self.table.columns
    }

    pub(crate) fn rows(&self) -> &Axis {
        &self.table.rows
    }

    /// The poses of all positions of the batch; one, if all are equal.
    pub(crate) fn frames(&self) -> &Frames {
        &self.table.frames
    }

    /// 1 for the cells of the input grid in which a sample reads an active position.
    pub(crate) fn occupied(&self) -> Option<&[u8]> {
        self.occupied.as_deref()
    }

    pub(crate) fn input_directions(&self) -> Option<&[Complex32]> {
        self.input_directions.as_deref()
    }
}

fn invalid(expected: &str, got: String) -> KernelError {
    KernelError::invalid("TapTable", expected, got)
}

/// Returns an error for sizes and grids that no table can represent.
fn check(batch: usize, input: &Grid, output: &Grid, kernel_size: usize) -> Result<()> {
    if kernel_size.is_multiple_of(2) || kernel_size > 255 {
        return Err(invalid("an odd kernel size up to 255", kernel_size.to_string()));
    }
    if input.is_empty() {
        let got = format!("{}x{}", input.height, input.width);
        return Err(invalid("an input grid of at least 1 position", got));
    }
    for (grid, name) in [(input, "input"), (output, "output")] {
        let positions = grid.len().checked_mul(batch.max(1));
        if positions.is_none_or(|n| n > MAX_POSITIONS) {
            let got = format!("{batch} images of {}x{}", grid.height, grid.width);
            return Err(invalid("at most 2^31 - 1 positions", format!("{name} of {got}")));
        }
        if grid.height.max(grid.width) > MAX_SIDE {
            let got = format!("{name} of {}x{}", grid.height, grid.width);
            return Err(invalid("grids of at most 2^24 rows and columns", got));
        }
        let finite = [grid.step, grid.origin[0], grid.origin[1]].iter().all(|v| v.is_finite());
        if !(finite && grid.step > 0.0) {
            let got = format!("{name} with step {}, origin {:?}", grid.step, grid.origin);
            return Err(invalid("grids of finite origin and step > 0", got));
        }
    }
    Ok(())
}

/// Indices of the positions of confidence > 0 in `[batch, height, width]`, ascending.
pub fn active_positions(field: &PoseField) -> Arc<[u32]> {
    let confident = |(index, &c): (usize, &f32)| (c > 0.0).then_some(index as u32);
    field.confidence().iter().enumerate().filter_map(confident).collect()
}

fn frames(field: &PoseField, kappa: f32) -> Frames {
    let (mut sin, mut cos) = (Vec::new(), Vec::new());
    let angles = field.angle().par_iter().with_min_len(4096);
    angles.map(|angle| angle.sin_cos()).unzip_into_vecs(&mut sin, &mut cos);
    let spacing = field.scale().iter().map(|scale| kappa * scale).collect();
    Frames { cos, sin, spacing, weight: field.weight().to_vec() }
}

/// The output's columns and rows in index coordinates of the input.
fn axes(output: &Grid, input: &Grid) -> (Axis, Axis) {
    (axis(output, input, 0, output.width), axis(output, input, 1, output.height))
}

/// The output's columns (axis 0) or rows (axis 1) in index coordinates of the input.
fn axis(output: &Grid, input: &Grid, axis: usize, count: usize) -> Axis {
    let locate = |i: usize| {
        let point = output.origin[axis] + output.step * i as f64;
        let index = (point - input.origin[axis]) / input.step;
        // Beyond these bounds every tap is outside any grid.
        let index = index.clamp(-1e9, 1e9);
        let cell = index.floor();
        // A fraction just below 1 may round to 1 in f32: harmless, the interpolation is continuous.
        (cell as f32, (index - cell) as f32)
    };
    let (cell, fraction) = (0..count).map(locate).unzip();
    Axis { cell, fraction }
}
