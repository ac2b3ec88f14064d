//! The taps of a block of output positions, written out: which pixels, with which weights.
//!
//! Everything is kept in lanes, one position after the other, so that all positions' places of one
//! tap are computed by vector instructions.

use std::ops::Range;

use crate::taps::{Coordinate, TapTable};

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

/// Corners of a bilinear sample.
pub(super) const CORNERS: usize = 4;

/// The samples of a block of positions. First [`place`](Tile::place) the positions, then
/// [`sample`](Tile::sample) taps, as often as needed.
#[derive(Debug, Default)]
pub(super) struct Tile {
    positions: usize,
    poses: usize,
    /// Where the positions lie on the input grid: whole cells (integers held as floats) and rest.
    x: Lanes,
    y: Lanes,
    /// Pixel of the batch that the position's image begins with.
    first_pixel: Vec<u32>,
    /// `[pose, position]`.
    frames: Frames,
    /// `[tap, pose, corner, position]`; corners outside of the image point somewhere inside.
    pixel: Vec<u32>,
    /// Weights of the corners, 0 outside of the image, in the same order.
    weight: Vec<f32>,
    /// `weight * cos d` and `weight * sin d`, d being the angle of the corner's frame relative to
    /// the position's, in the same order; for relative-pose kernels only.
    turn: Option<[Vec<f32>; 2]>,
}

/// One coordinate of all positions.
#[derive(Debug, Default)]
struct Lanes {
    cell: Vec<f32>,
    rest: Vec<f32>,
}

/// The frames of all positions: direction, tap vector `spacing * direction`, weight.
#[derive(Debug, Default)]
struct Frames {
    cos: Vec<f32>,
    sin: Vec<f32>,
    step_cos: Vec<f32>,
    step_sin: Vec<f32>,
    weight: Vec<f32>,
}

/// The samples of one tap in one pose, `[corner, position]` each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples<'a> {
    pub(super) pixel: &'a [u32],
    pub(super) weight: &'a [f32],
    /// `weight * cos d`, `weight * sin d`.
    pub(super) turn: Option<[&'a [f32]; 2]>,
}

impl Lanes {
    fn clear(&mut self) {
        self.cell.clear();
        self.rest.clear();
    }

    fn push(&mut self, coordinate: Coordinate) {
        self.cell.push(coordinate.cell as f32);
        self.rest.push(coordinate.rest);
    }
}

impl Tile {
    /// Reads where `positions` lie and how their frames are turned.
    pub(super) fn place(&mut self, taps: &TapTable, positions: Positions) {
        let (output, pixels) = (taps.output_grid(), taps.input_grid().len());
        (self.positions, self.poses) = (positions.len(), taps.poses());
        self.x.clear();
        self.y.clear();
        self.first_pixel.clear();
        for index in 0..positions.len() {
            let position = positions.get(index);
            let (image, cell) = (position / output.len(), position % output.len());
            self.x.push(taps.columns()[cell % output.width]);
            self.y.push(taps.rows()[cell / output.width]);
            self.first_pixel.push((image * pixels) as u32);
        }
        let frames = &mut self.frames;
        for lanes in [
            &mut frames.cos,
            &mut frames.sin,
            &mut frames.step_cos,
            &mut frames.step_sin,
            &mut frames.weight,
        ] {
            lanes.clear();
        }
        for pose in 0..self.poses {
            for index in 0..positions.len() {
                let frame = taps.frames()[positions.get(index) * self.poses + pose];
                frames.cos.push(frame.direction.cos);
                frames.sin.push(frame.direction.sin);
                frames.step_cos.push(frame.spacing * frame.direction.cos);
                frames.step_sin.push(frame.spacing * frame.direction.sin);
                frames.weight.push(frame.weight);
            }
        }
    }

    /// Computes the samples of `wanted` taps, counted row by row through the kernel.
    pub(super) fn sample(&mut self, taps: &TapTable, wanted: Range<usize>, relative_pose: bool) {
        let (kernel_size, n) = (taps.kernel_size(), self.positions);
        let input = taps.input_grid();
        let len = wanted.len() * self.poses * CORNERS * n;
        self.pixel.resize(len, 0);
        self.weight.resize(len, 0.0);
        self.turn = match relative_pose {
            true => Some(self.turn.take().unwrap_or_default()),
            false => None,
        };
        let step = (self.poses * CORNERS * n).max(1);
        let lanes = self.pixel.chunks_exact_mut(step).zip(self.weight.chunks_exact_mut(step));
        for (tap, (pixel, weight)) in wanted.zip(lanes) {
            let centred = |index: usize| index as f32 - (kernel_size / 2) as f32;
            let (tx, ty) = (centred(tap % kernel_size), centred(tap / kernel_size));
            let poses =
                pixel.chunks_exact_mut(CORNERS * n).zip(weight.chunks_exact_mut(CORNERS * n));
            for (pose, (pixel, weight)) in poses.enumerate() {
                let frames = pose * n..(pose + 1) * n;
                let places = Places {
                    tap: [tx, ty],
                    size: [input.width, input.height],
                    x_cell: &self.x.cell,
                    x_rest: &self.x.rest,
                    y_cell: &self.y.cell,
                    y_rest: &self.y.rest,
                    first_pixel: &self.first_pixel,
                    cos: &self.frames.step_cos[frames.clone()],
                    sin: &self.frames.step_sin[frames.clone()],
                    weight: &self.frames.weight[frames],
                };
                sample_tap(places, pixel, weight);
            }
        }
        if let (Some([cos, sin]), Some(there)) = (&mut self.turn, taps.input_directions()) {
            cos.resize(len, 0.0);
            sin.resize(len, 0.0);
            for corners in 0..len / n.max(1) {
                let pose = corners / CORNERS % self.poses;
                for index in 0..n {
                    let (at, frame) = (corners * n + index, pose * n + index);
                    let there = there[self.pixel[at] as usize];
                    let own = [self.frames.cos[frame], self.frames.sin[frame]];
                    cos[at] = self.weight[at] * (there.cos * own[0] + there.sin * own[1]);
                    sin[at] = self.weight[at] * (there.sin * own[0] - there.cos * own[1]);
                }
            }
        }
    }

    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    pub(super) fn poses(&self) -> usize {
        self.poses
    }

    /// Values of a tap in a row of the panel.
    pub(super) fn tap_width(&self, channels: usize) -> usize {
        if self.turn.is_some() { 3 * channels } else { channels }
    }

    /// The samples of pose `pose` of the `tap`-th of the taps that were last sampled.
    pub(super) fn samples(&self, tap: usize, pose: usize) -> Samples<'_> {
        let len = CORNERS * self.positions;
        let range = (tap * self.poses + pose) * len..(tap * self.poses + pose + 1) * len;
        Samples {
            pixel: &self.pixel[range.clone()],
            weight: &self.weight[range.clone()],
            turn: self.turn.as_ref().map(|[cos, sin]| [&cos[range.clone()], &sin[range]]),
        }
    }
}

/// What the samples of one tap in one pose follow from, a value a position each.
struct Places<'a> {
    tap: [f32; 2],
    size: [usize; 2],
    x_cell: &'a [f32],
    x_rest: &'a [f32],
    y_cell: &'a [f32],
    y_rest: &'a [f32],
    first_pixel: &'a [u32],
    cos: &'a [f32],
    sin: &'a [f32],
    weight: &'a [f32],
}

fn sample_tap(places: Places, pixel: &mut [u32], weight: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // SAFETY: AVX2 and FMA are there.
        return unsafe { sample_tap_avx2(places, pixel, weight) };
    }
    sample_tap_lanes(places, pixel, weight);
}

/// [`sample_tap_lanes`] compiled for wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn sample_tap_avx2(places: Places, pixel: &mut [u32], weight: &mut [f32]) {
    sample_tap_lanes(places, pixel, weight);
}

#[inline(always)]
fn sample_tap_lanes(places: Places, pixel: &mut [u32], weight: &mut [f32]) {
    let n = places.first_pixel.len();
    let (x_cell, x_rest) = (&places.x_cell[..n], &places.x_rest[..n]);
    let (y_cell, y_rest) = (&places.y_cell[..n], &places.y_rest[..n]);
    let (cos, sin, own) = (&places.cos[..n], &places.sin[..n], &places.weight[..n]);
    let [tx, ty] = places.tap;
    let [width, height] = places.size;
    let (pixels, weights) = (corner_lanes(pixel, n), corner_lanes(weight, n));
    for i in 0..n {
        let x = neighbours(x_cell[i], x_rest[i] + (cos[i] * tx - sin[i] * ty), width);
        let y = neighbours(y_cell[i], y_rest[i] + (sin[i] * tx + cos[i] * ty), height);
        let rows = [
            places.first_pixel[i] + y.cell[0] * width as u32,
            places.first_pixel[i] + y.cell[1] * width as u32,
        ];
        let (low, high) = (own[i] * y.weight[0], own[i] * y.weight[1]);
        pixels[0][i] = rows[0] + x.cell[0];
        pixels[1][i] = rows[0] + x.cell[1];
        pixels[2][i] = rows[1] + x.cell[0];
        pixels[3][i] = rows[1] + x.cell[1];
        weights[0][i] = low * x.weight[0];
        weights[1][i] = low * x.weight[1];
        weights[2][i] = high * x.weight[0];
        weights[3][i] = high * x.weight[1];
    }
}

#[inline(always)]
fn corner_lanes<T>(values: &mut [T], n: usize) -> [&mut [T]; CORNERS] {
    let (top, bottom) = values.split_at_mut(2 * n);
    let ((a, b), (c, d)) = (top.split_at_mut(n), bottom.split_at_mut(n));
    [a, b, c, &mut d[..n]]
}

/// The two neighbours of a coordinate along one axis, moved inside, and their weights: 0 outside.
struct Neighbours {
    cell: [u32; 2],
    weight: [f32; 2],
}

/// `size` is at least 1. Written with comparisons that send everything that is not inside, and
/// not-a-number, to weight 0.
#[inline(always)]
fn neighbours(cell: f32, rest: f32, size: usize) -> Neighbours {
    let floor = rest.floor();
    let fraction = rest - floor;
    let (low, last) = (cell + floor, (size - 1) as f32);
    let clamp = |v: f32| {
        let v = if v > 0.0 { v } else { 0.0 };
        if v < last { v } else { last }
    };
    let (near, far) = (clamp(low), clamp(low + 1.0));
    Neighbours {
        // SAFETY: both are in 0..=last, and grids are at most 2^24 wide.
        cell: unsafe {
            [near.to_int_unchecked::<i32>() as u32, far.to_int_unchecked::<i32>() as u32]
        },
        weight: [
            if near == low { 1.0 - fraction } else { 0.0 },
            if far == low + 1.0 { fraction } else { 0.0 },
        ],
    }
}
