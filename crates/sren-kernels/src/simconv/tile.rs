//! The taps of a block of output positions, written out: which pixels, with which weights.

use crate::taps::TapTable;

/// One bilinear sample: four pixels of the batch and their weights. Corners outside of the image
/// have weight 0 and point at some pixel inside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) pixel: [u32; 4],
    pub(super) weight: [f32; 4],
}

/// `weight * cos d` and `weight * sin d` of the four corners of a [`Sample`], d being the angle of
/// the corner's frame relative to the output's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) cos: [f32; 4],
    pub(super) sin: [f32; 4],
}

/// The samples of a block of positions, `[position, tap, pose]`.
#[derive(Debug, Default)]
pub(super) struct Tile {
    pub(super) samples: Vec<Sample>,
    /// Filled for relative-pose kernels only.
    pub(super) turns: Vec<Turn>,
}

/// Which output positions a block holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Positions<'a> {
    /// `start..end` of all positions of the batch.
    Range(usize, usize),
    /// These positions of the batch.
    List(&'a [u32]),
}

impl<'a> Positions<'a> {
    /// All positions that `taps` computes.
    pub(super) fn of(taps: &'a TapTable) -> Self {
        match taps.active() {
            Some(list) => Self::List(list),
            None => Self::Range(0, taps.batch() * taps.output_grid().len()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(start, end) => end - start,
            Self::List(list) => list.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> usize {
        match self {
            Self::Range(start, _) => start + index,
            Self::List(list) => list[index] as usize,
        }
    }

    /// The positions numbered `start..end` within these.
    pub(super) fn slice(&self, start: usize, end: usize) -> Self {
        match *self {
            Self::Range(first, _) => Self::Range(first + start, first + end),
            Self::List(list) => Self::List(&list[start..end]),
        }
    }

    /// How many of these lie before `position` of the batch.
    pub(super) fn count_before(&self, position: usize) -> usize {
        match *self {
            Self::Range(start, end) => position.clamp(start, end) - start,
            Self::List(list) => list.partition_point(|&p| (p as usize) < position),
        }
    }
}

impl Tile {
    /// Writes out the taps of `positions`.
    pub(super) fn fill(&mut self, taps: &TapTable, positions: Positions, relative_pose: bool) {
        let (poses, radius) = (taps.poses(), (taps.kernel_size() / 2) as i32);
        let (output, input) = (taps.output_grid(), taps.input_grid());
        let (height, width) = (input.height as i32, input.width as i32);
        let turned = taps.input_directions().filter(|_| relative_pose);
        self.samples.clear();
        self.turns.clear();
        if input.is_empty() {
            return;
        }
        for index in 0..positions.len() {
            let position = positions.get(index);
            let (image, cell) = (position / output.len(), position % output.len());
            let row = taps.rows()[cell / output.width];
            let column = taps.columns()[cell % output.width];
            let first = image * input.len();
            let frames = &taps.frames()[position * poses..][..poses];
            for ty in -radius..=radius {
                for tx in -radius..=radius {
                    for frame in frames {
                        let (tx, ty) = (tx as f32, ty as f32);
                        let (cos, sin) = (
                            frame.spacing * frame.direction.cos,
                            frame.spacing * frame.direction.sin,
                        );
                        let x = Axis::new(column.cell, column.rest + (cos * tx - sin * ty), width);
                        let y = Axis::new(row.cell, row.rest + (sin * tx + cos * ty), height);
                        let sample = Sample {
                            pixel: std::array::from_fn(|i| {
                                (first + y.cell[i / 2] * input.width + x.cell[i % 2]) as u32
                            }),
                            weight: std::array::from_fn(|i| {
                                frame.weight * y.weight[i / 2] * x.weight[i % 2]
                            }),
                        };
                        self.samples.push(sample);
                        if let Some(directions) = turned {
                            let own = frame.direction;
                            let mut turn = Turn { cos: [0.0; 4], sin: [0.0; 4] };
                            for i in 0..4 {
                                let there = directions[sample.pixel[i] as usize];
                                let weight = sample.weight[i];
                                turn.cos[i] = weight * (there.cos * own.cos + there.sin * own.sin);
                                turn.sin[i] = weight * (there.sin * own.cos - there.cos * own.sin);
                            }
                            self.turns.push(turn);
                        }
                    }
                }
            }
        }
    }
}

/// The two neighbours of a coordinate along one axis, moved inside, and their weights: 0 outside.
struct Axis {
    cell: [usize; 2],
    weight: [f32; 2],
}

impl Axis {
    fn new(cell: i32, rest: f32, size: i32) -> Self {
        // Far outside all weights are zero: one place out there serves for all, and for not-a-number.
        let rest = if rest.abs() < 2e9 { rest } else { 2e9 };
        let floor = rest.floor();
        let fraction = rest - floor;
        let low = cell.saturating_add(floor as i32);
        let high = low.saturating_add(1);
        let weigh = |at: i32, weight: f32| if (0..size).contains(&at) { weight } else { 0.0 };
        Self {
            cell: [low.clamp(0, size - 1) as usize, high.clamp(0, size - 1) as usize],
            weight: [weigh(low, 1.0 - fraction), weigh(high, fraction)],
        }
    }
}
