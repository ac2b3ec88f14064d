//! Where a similarity convolution reads: the taps of every output position.
//!
//! The output position at image point p reads tap t = (tx, ty) of the `k x k` kernel, counted from
//! its centre, at the place
//! ```text
//! (p - input.origin) / input.step + kappa * Lambda * R(Gamma) * t
//! ```
//! in index coordinates of the input grid: bilinear, zero outside. Tap offsets are in units of the
//! input's step, so that `kappa * Lambda = 1`, `Gamma = 0` is the plain convolution in any stage.
//!
//! The table holds angle, spacing and weight of every position and pose (16 bytes), not
//! the four indices and weights of every tap (32 bytes): these follow from it in a few
//! instructions, which costs less than reading them from memory would.

use std::sync::Arc;

use rayon::prelude::*;
use sren_math::Grid;

use crate::error::{KernelError, Result};
use crate::pose::PoseField;

/// The unit vector (cos, sin) of an angle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Direction {
    pub(crate) cos: f32,
    pub(crate) sin: f32,
}

/// The poses of positions, a list of each of their parts: the direction of Gamma, the distance
/// `kappa * Lambda` of neighbouring taps, and the weight of the pose.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) cos: Vec<f32>,
    pub(crate) sin: Vec<f32>,
    pub(crate) spacing: Vec<f32>,
    pub(crate) weight: Vec<f32>,
}

/// Coordinates along one axis of the input grid: whole cells, held as floats, and the rests in 0..1.
/// Held apart, so that the rest, and with it every interpolation weight, does not depend on how far
/// from the origin the position is: translation by whole cells is exact.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) cell: Vec<f32>,
    pub(crate) rest: Vec<f32>,
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
    /// `[batch, height, width, poses]`, or the one that all positions have.
    frames: Frames,
    /// Whether every position reads exactly its own pixel.
    is_copy: bool,
}

/// The taps of every output position of a batch. Made once for a pose field, an input grid and a
/// kernel size; cheap to clone and shared by every layer that uses them.
#[derive(Debug, Clone)]
pub struct TapTable {
    table: Arc<Table>,
    active: Option<Arc<[u32]>>,
    /// Angles at the positions of the input grid, `[batch, height, width]`.
    input_directions: Option<Arc<[Direction]>>,
}

/// Longest batch, in positions, that the tables can number.
const MAX_POSITIONS: usize = i32::MAX as usize;

/// Longest side of a grid: beyond it f32 does not hold every whole number.
const MAX_SIDE: usize = 1 << 24;

impl TapTable {
    /// The taps of a convolution from the grid `input` to the grid of `field`. `kernel_size` is
    /// odd; `kappa` turns a pose's scale into the distance of neighbouring taps. With
    /// `active_only`, positions of confidence 0 are left out: their output is exactly zero.
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
        let whole = field.weight().iter().all(|&weight| weight == 1.0);
        let is_copy = kernel_size == 1 && output == *input && whole;
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
        Ok(Self { table: Arc::new(table), active, input_directions: None })
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
        Ok(Self { table: Arc::new(table), active: None, input_directions: None })
    }

    /// The same taps with the angles of the input grid's own pose field (its best pose), which
    /// relative-pose kernels read.
    pub fn with_input_poses(mut self, field: &PoseField) -> Result<Self> {
        if field.grid() != self.input_grid() || field.batch() != self.batch() {
            return Err(KernelError::invalid(
                "TapTable::with_input_poses",
                format!("{} images on {:?}", self.batch(), self.input_grid()),
                format!("{} images on {:?}", field.batch(), field.grid()),
            ));
        }
        let best = field.angle().par_chunks_exact(field.poses()).with_min_len(4096);
        let directions: Vec<Direction> = best.map(|angles| direction(angles[0])).collect();
        self.input_directions = Some(directions.into());
        Ok(self)
    }

    /// Number of images.
    pub fn batch(&self) -> usize {
        self.table.batch
    }

    /// Number of weighted poses a position.
    pub fn poses(&self) -> usize {
        self.table.poses
    }

    /// Number of taps along one side of the kernel.
    pub fn kernel_size(&self) -> usize {
        self.table.kernel_size
    }

    /// The grid that is read.
    pub fn input_grid(&self) -> &Grid {
        &self.table.input
    }

    /// The grid that is written.
    pub fn output_grid(&self) -> &Grid {
        &self.table.output
    }

    /// Whether the input's poses are there, as relative-pose kernels need.
    pub fn has_input_poses(&self) -> bool {
        self.input_directions.is_some()
    }

    /// The positions that are computed, numbered through `[batch, height, width]`, ascending;
    /// `None` where all are.
    pub fn active(&self) -> Option<&[u32]> {
        self.active.as_deref()
    }

    /// The active positions as a shared list, for the layers that follow (batch norm).
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
    }

    /// Whether this is a `1 x 1` kernel from a grid to itself with one pose, which reads exactly
    /// its own pixel: the input is its own panel.
    pub(crate) fn is_copy(&self) -> bool {
        self.table.is_copy
    }

    pub(crate) fn columns(&self) -> &Axis {
        &self.table.columns
    }

    pub(crate) fn rows(&self) -> &Axis {
        &self.table.rows
    }

    /// The poses of all positions of the batch, position by position; one, if all are alike.
    pub(crate) fn frames(&self) -> &Frames {
        &self.table.frames
    }

    pub(crate) fn input_directions(&self) -> Option<&[Direction]> {
        self.input_directions.as_deref()
    }
}

fn invalid(expected: &str, got: String) -> KernelError {
    KernelError::invalid("TapTable", expected, got)
}

/// Refuses what no table can hold.
fn check(batch: usize, input: &Grid, output: &Grid, kernel_size: usize) -> Result<()> {
    if kernel_size.is_multiple_of(2) || kernel_size > 255 {
        return Err(invalid("an odd kernel size up to 255", kernel_size.to_string()));
    }
    if input.is_empty() {
        let got = format!("{}x{}", input.height, input.width);
        return Err(invalid("an input grid of at least 1 position", got));
    }
    for (grid, name) in [(input, "input"), (output, "output")] {
        let positions = grid.len().checked_mul(batch);
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

/// The positions of confidence > 0, numbered through `[batch, height, width]`, ascending.
pub fn active_positions(field: &PoseField) -> Arc<[u32]> {
    let confident = |(index, &c): (usize, &f32)| (c > 0.0).then_some(index as u32);
    field.confidence().iter().enumerate().filter_map(confident).collect()
}

fn direction(angle: f32) -> Direction {
    let (sin, cos) = angle.sin_cos();
    Direction { cos, sin }
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
    let place = |i: usize| {
        let point = output.origin[axis] + output.step * i as f64;
        let index = (point - input.origin[axis]) / input.step;
        // Beyond these bounds every tap is outside of any grid all the same.
        let index = index.clamp(-1e9, 1e9);
        let cell = index.floor();
        // The nearest f32 of a rest just under 1 is 1: harmless, the interpolation is continuous.
        (cell as f32, (index - cell) as f32)
    };
    let (cell, rest) = (0..count).map(place).unzip();
    Axis { cell, rest }
}
