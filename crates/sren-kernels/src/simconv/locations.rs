//! Locations and frames of the positions of a tile, in lanes.

use super::positions::Positions;
use super::tile::LANES;
use crate::taps::TapTable;

/// A value per position.
pub(super) type Lane = [f32; LANES];

/// Coordinates of the positions on the input grid, as integer cells (stored as floats) and fractions,
/// and the first pixel of the position's image in the batch.
pub(super) struct Locations {
    pub(super) x_cell: Lane,
    pub(super) x_fraction: Lane,
    pub(super) y_cell: Lane,
    pub(super) y_fraction: Lane,
    pub(super) first_pixel: [u32; LANES],
}

/// One pose of all positions: direction, tap vector `spacing * direction`, weight.
#[derive(Clone)]
pub(super) struct Frames {
    pub(super) cos: Lane,
    pub(super) sin: Lane,
    pub(super) step_cos: Lane,
    pub(super) step_sin: Lane,
    pub(super) weight: Lane,
}

impl Default for Locations {
    fn default() -> Self {
        let zero = [0.0; LANES];
        let first_pixel = [0; LANES];
        Self { x_cell: zero, x_fraction: zero, y_cell: zero, y_fraction: zero, first_pixel }
    }
}

impl Default for Frames {
    fn default() -> Self {
        let zero = [0.0; LANES];
        Self { cos: zero, sin: zero, step_cos: zero, step_sin: zero, weight: zero }
    }
}

impl Locations {
    /// Loads the locations of `positions`.
    pub(super) fn load(&mut self, taps: &TapTable, positions: Positions) {
        let (columns, rows) = (taps.columns(), taps.rows());
        let (area, width) = (taps.output_grid().len(), taps.output_grid().width);
        let pixels = taps.input_grid().len();
        let mut lane = 0;
        while lane < positions.len() {
            let position = positions.get(lane);
            let (image, cell) = (position / area, position % area);
            let (column, row) = (cell % width, cell / width);
            // The positions that follow in the same row of the grid.
            let count = match positions {
                Positions::Range(_, end) => (width - column).min(end - position),
                Positions::List(_) => 1,
            };
            let (lanes, from) = (lane..lane + count, column..column + count);
            self.x_cell[lanes.clone()].copy_from_slice(&columns.cell[from.clone()]);
            self.x_fraction[lanes.clone()].copy_from_slice(&columns.fraction[from]);
            self.y_cell[lanes.clone()].fill(rows.cell[row]);
            self.y_fraction[lanes.clone()].fill(rows.fraction[row]);
            self.first_pixel[lanes].fill((image * pixels) as u32);
            lane += count;
        }
    }
}

impl Frames {
    /// Loads the frames of `positions` in one of their poses.
    pub(super) fn load(&mut self, taps: &TapTable, positions: Positions, pose: usize) {
        let frames = taps.frames();
        let each: [(&mut Lane, &[f32]); 4] = [
            (&mut self.cos, &frames.cos),
            (&mut self.sin, &frames.sin),
            (&mut self.step_cos, &frames.spacing),
            (&mut self.weight, &frames.weight),
        ];
        let count = positions.len();
        for (lanes, values) in each {
            match (values, positions) {
                ([all], _) => lanes[..count].fill(*all),
                (_, Positions::Range(start, end)) if taps.poses() == 1 => {
                    lanes[..count].copy_from_slice(&values[start..end]);
                }
                _ => {
                    for (index, lane) in lanes[..count].iter_mut().enumerate() {
                        *lane = values[positions.get(index) * taps.poses() + pose];
                    }
                }
            }
        }
        for lane in 0..count {
            let spacing = self.step_cos[lane];
            self.step_cos[lane] = spacing * self.cos[lane];
            self.step_sin[lane] = spacing * self.sin[lane];
        }
    }
}
