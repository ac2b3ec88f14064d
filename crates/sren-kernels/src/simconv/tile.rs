//! The taps of a block of output positions, written out: which pixels, with which weights.
//!
//! Everything is kept in lanes, one position after the other, so that all positions' places of one
//! tap are computed by vector instructions.

use std::ops::Range;

use super::inside::{Cut, Inside, Part};
use super::placement::{Frames, Places};
use super::positions::Positions;
use crate::simd::LINE;
use crate::taps::TapTable;

/// Corners of a bilinear sample.
pub(super) const CORNERS: usize = 4;

/// Most positions of a tile.
pub(super) const POSITIONS: usize = 192;

/// Distance of the lanes of a tile: known beforehand, so that the places of a sample's corners
/// are, and an odd number of cache lines, so that lanes do not share cache sets.
pub(super) const LANES: usize = POSITIONS + LINE;

/// The corners that samples have: one if they are exact.
pub(super) fn used_corners(corners: &[usize; CORNERS], exact: bool) -> &[usize] {
    if exact { &corners[..1] } else { corners }
}

/// The samples of a block of positions. First [`place`](Tile::place) the positions, then
/// [`sample`](Tile::sample) taps, as often as needed.
pub(super) struct Tile {
    positions: usize,
    poses: usize,
    taps: usize,
    pixels: Range<usize>,
    places: Box<Places>,
    /// A frame for each pose.
    frames: Vec<Frames>,
    /// Pixels from the first corner of a sample to each.
    corners: [usize; CORNERS],
    /// The first corners, `[tap, pose, LANES]`.
    pixel: Vec<u32>,
    /// Weights of the corners, `[tap, pose, corner, LANES]`.
    weight: Vec<f32>,
    /// `weight * cos d` and `weight * sin d`, d being the angle of the corner's frame relative to
    /// the position's, in the same order; for relative-pose kernels only.
    turn: Option<[Vec<f32>; 2]>,
    /// `[tap, pose]`: whether samples have one corner only.
    exact: Vec<bool>,
    inside: Inside,
}

impl Default for Tile {
    fn default() -> Self {
        Self {
            positions: 0,
            poses: 0,
            taps: 0,
            pixels: 0..0,
            places: Box::default(),
            frames: Vec::new(),
            corners: [0; CORNERS],
            pixel: Vec::new(),
            weight: Vec::new(),
            turn: None,
            exact: Vec::new(),
            inside: Inside::default(),
        }
    }
}

impl Tile {
    /// Reads where `positions`, at most [`POSITIONS`], lie and how their frames are turned.
    pub(super) fn place(&mut self, taps: &TapTable, positions: Positions) {
        assert!(positions.len() <= POSITIONS, "positions of a tile");
        let (output, pixels) = (taps.output_grid(), taps.input_grid().len());
        (self.positions, self.poses, self.taps) = (positions.len(), taps.poses(), 0);
        self.pixels = 0..0;
        if positions.len() == 0 {
            return;
        }
        let image = |position: usize| position / output.len();
        let (first, last) = (positions.get(0), positions.get(positions.len() - 1));
        self.pixels = image(first) * pixels..(image(last) + 1) * pixels;
        self.places.read(taps, positions);
        self.frames.resize(self.poses, Frames::default());
        for (pose, frames) in self.frames.iter_mut().enumerate() {
            frames.read(taps, positions, pose);
        }
    }

    /// Computes the samples of `wanted` taps, counted row by row through the kernel, and cuts them
    /// into parts.
    pub(super) fn sample(
        &mut self,
        taps: &TapTable,
        wanted: Range<usize>,
        relative_pose: bool,
        cut: Cut,
    ) {
        let kernel_size = taps.kernel_size();
        let size = [taps.input_grid().width, taps.input_grid().height];
        self.taps = wanted.len();
        let [right, below] = [size[0].min(2) - 1, (size[1].min(2) - 1) * size[0]];
        self.corners = [0, right, below, below + right];
        let len = wanted.len() * self.poses * LANES;
        self.pixel.resize(len, 0);
        self.weight.resize(CORNERS * len, 0.0);
        self.turn = relative_pose.then(|| self.turn.take().unwrap_or_default());
        self.exact.clear();
        self.inside.begin(wanted.len(), self.positions, cut);
        let mut pixels = self.pixel.chunks_exact_mut(LANES);
        let mut weights = self.weight.chunks_exact_mut(CORNERS * LANES);
        for (index, tap) in wanted.enumerate() {
            let centred = |index: usize| index as f32 - (kernel_size / 2) as f32;
            let tap = [centred(tap % kernel_size), centred(tap / kernel_size)];
            for ((frames, pixel), weight) in self.frames.iter().zip(&mut pixels).zip(&mut weights) {
                let samples = Samples { pixel, weight, inside: self.inside.flags(index) };
                let exact = sample_tap(tap, size, &self.places, frames, self.positions, samples);
                self.exact.push(exact);
            }
        }
        self.inside.finish();
        if let (Some([cos, sin]), Some(there)) = (&mut self.turn, taps.input_directions()) {
            cos.resize(CORNERS * len, 0.0);
            sin.resize(CORNERS * len, 0.0);
            for (index, &exact) in self.exact.iter().enumerate() {
                let own = &self.frames[index % self.poses];
                for (corner, distance) in used_corners(&self.corners, exact).iter().enumerate() {
                    for lane in 0..self.positions {
                        let there = there[self.pixel[index * LANES + lane] as usize + distance];
                        let at = (index * CORNERS + corner) * LANES + lane;
                        let weight = self.weight[at];
                        cos[at] = weight * (there.cos * own.cos[lane] + there.sin * own.sin[lane]);
                        sin[at] = weight * (there.sin * own.cos[lane] - there.cos * own.sin[lane]);
                    }
                }
            }
        }
    }

    /// The parts of the taps that were sampled, and what each sees.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.inside.parts()
    }

    /// Whether samples outside of the image are left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.inside.leaves_out()
    }

    /// A bit for each position of the run that begins with `position`: whether its sample of `tap`
    /// is to be taken.
    #[inline(always)]
    pub(super) fn mask(&self, tap: usize, position: usize) -> u8 {
        self.inside.mask(tap, position)
    }

    /// Number of positions.
    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    /// Number of poses a position.
    pub(super) fn poses(&self) -> usize {
        self.poses
    }

    /// Number of taps last sampled.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// The pixels of the batch that the tile's images have: every sample is one of them.
    pub(super) fn pixels(&self) -> Range<usize> {
        self.pixels.clone()
    }

    /// Whether samples are turned, as relative-pose kernels need.
    pub(super) fn is_turned(&self) -> bool {
        self.turn.is_some()
    }

    /// Values of a tap in a row of the panel.
    pub(super) fn tap_width(&self, channels: usize) -> usize {
        if self.is_turned() { 3 * channels } else { channels }
    }

    /// `[tap, pose]`: whether all samples lie exactly on pixels and have only a first corner, the
    /// others being undefined. So do the centre of the kernel where the grids agree, and every tap
    /// of a plain convolution.
    pub(super) fn exact(&self) -> &[bool] {
        &self.exact
    }

    /// Pixels from the first corner of any sample to each of its corners.
    pub(super) fn corners(&self) -> &[usize; CORNERS] {
        &self.corners
    }

    /// The first corners of all samples, `[tap, pose, LANES]`, pixels of the batch.
    pub(super) fn sampled_pixels(&self) -> &[u32] {
        &self.pixel
    }

    /// The weights of all samples' corners for the one or three sums of a tap,
    /// `[tap, pose, corner, LANES]`.
    pub(super) fn weights(&self) -> [&[f32]; 3] {
        match &self.turn {
            Some([cos, sin]) => [&self.weight, cos, sin],
            None => [&self.weight, &[], &[]],
        }
    }
}

/// Where the samples of one tap in one pose go: `pixel` `[LANES]`, `weight` `[corner, LANES]`, and,
/// if that is of interest, 1 where they are inside of the image.
struct Samples<'a> {
    pixel: &'a mut [u32],
    weight: &'a mut [f32],
    inside: Option<&'a mut [u8; LANES]>,
}

fn sample_tap(
    tap: [f32; 2],
    size: [usize; 2],
    places: &Places,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { sample_tap_avx512(tap, size, places, frames, positions, samples) };
    } else if crate::simd::has_avx2() {
        // SAFETY: AVX2 and FMA are there.
        return unsafe { sample_tap_avx2(tap, size, places, frames, positions, samples) };
    }
    sample_tap_lanes(tap, size, places, frames, positions, samples)
}

/// [`sample_tap_lanes`] compiled for wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn sample_tap_avx2(
    tap: [f32; 2],
    size: [usize; 2],
    places: &Places,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    sample_tap_lanes(tap, size, places, frames, positions, samples)
}

/// [`sample_tap_lanes`] compiled for the widest.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sample_tap_avx512(
    tap: [f32; 2],
    size: [usize; 2],
    places: &Places,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    sample_tap_lanes(tap, size, places, frames, positions, samples)
}

/// The samples of one tap in one pose; whether all lie exactly on pixels, and then only the first
/// corner counts.
#[inline(always)]
fn sample_tap_lanes(
    [tx, ty]: [f32; 2],
    [width, height]: [usize; 2],
    places: &Places,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    let positions = positions.min(LANES);
    let Samples { pixel, weight, inside } = samples;
    let (pixel, weight) = (&mut pixel[..LANES], &mut weight[..CORNERS * LANES]);
    let place = |i: usize| {
        let (cos, sin) = (frames.step_cos[i], frames.step_sin[i]);
        let x = Place::new(places.x_cell[i], places.x_rest[i] + (cos * tx - sin * ty));
        let y = Place::new(places.y_cell[i], places.y_rest[i] + (sin * tx + cos * ty));
        (x, y)
    };
    let mut fractions = 0;
    for i in 0..positions {
        let (x, y) = place(i);
        let (column, x_weights) = x.neighbours(width);
        let (row, y_weights) = y.neighbours(height);
        pixel[i] = places.first_pixel[i] + row * width as u32 + column;
        let weights = [frames.weight[i] * y_weights[0], frames.weight[i] * y_weights[1]];
        for corner in 0..CORNERS {
            weight[corner * LANES + i] = weights[corner / 2] * x_weights[corner % 2];
        }
        fractions |= x.fraction.to_bits() | y.fraction.to_bits();
    }
    if let Some(inside) = inside {
        for i in 0..positions {
            let sum = weight[i] + weight[LANES + i] + weight[2 * LANES + i] + weight[3 * LANES + i];
            inside[i] |= u8::from(sum != 0.0);
        }
    }
    if fractions != 0 {
        return false;
    }
    for i in 0..positions {
        let (x, y) = place(i);
        let (column, x_inside) = x.nearest(width);
        let (row, y_inside) = y.nearest(height);
        pixel[i] = places.first_pixel[i] + row * width as u32 + column;
        weight[i] = if x_inside & y_inside { frames.weight[i] } else { 0.0 };
    }
    true
}

/// A coordinate along one axis: an integer and the rest in 0..1.
struct Place {
    low: f32,
    fraction: f32,
}

/// Written with comparisons that send everything that is not inside, and not-a-number, to weight 0.
/// Sizes are at least 1 and at most 2^24.
impl Place {
    #[inline(always)]
    fn new(cell: f32, rest: f32) -> Self {
        let floor = rest.floor();
        Self { low: cell + floor, fraction: rest - floor }
    }

    /// Two neighbouring cells inside, of which the first is given (the only one if `size` is 1),
    /// and their weights.
    #[inline(always)]
    fn neighbours(&self, size: usize) -> (u32, [f32; 2]) {
        let (near, cell) = clamp(self.low, size.max(2) - 2);
        let place = (self.low - near) + self.fraction;
        let weight = |at: f32| {
            let weight = 1.0 - (place - at).abs();
            if weight > 0.0 { weight } else { 0.0 }
        };
        let second = if size > 1 { 1.0 } else { f32::INFINITY };
        (cell, [weight(0.0), weight(second)])
    }

    /// The cell of a whole coordinate, moved inside, and whether it was.
    #[inline(always)]
    fn nearest(&self, size: usize) -> (u32, bool) {
        let (near, cell) = clamp(self.low, size - 1);
        (cell, near == self.low)
    }
}

/// `value`, an integer or not-a-number, moved to `0..=last`.
#[inline(always)]
fn clamp(value: f32, last: usize) -> (f32, u32) {
    let last = last as f32;
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < last { value } else { last };
    // SAFETY: it is in 0..=last, which is less than 2^24.
    (value, unsafe { value.to_int_unchecked::<i32>() } as u32)
}
