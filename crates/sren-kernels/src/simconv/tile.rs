//! The taps of a block of output positions, expanded to pixels and interpolation weights.
//!
//! All arrays are in lanes, one per position, so that vector instructions compute the samples of one
//! tap for many positions.

use std::ops::Range;

use num_complex::Complex32;

use super::inside::{Cut, Inside, Part};
use super::locations::{Frames, Locations};
use super::positions::Positions;
use crate::simd::LINE;
use crate::taps::TapTable;

/// Corners of a bilinear sample.
pub(super) const CORNERS: usize = 4;

/// Most positions of a tile.
pub(super) const POSITIONS: usize = 192;

/// Distance between rows of lanes: a constant, so that the offsets of a sample's corners are, and an
/// odd number of cache lines, so that rows do not share cache sets.
pub(super) const LANES: usize = POSITIONS + LINE;

/// The corners of a sample that have a weight: one if the sample is exact.
pub(super) fn used_corners(corners: &[usize; CORNERS], exact: bool) -> &[usize] {
    if exact { &corners[..1] } else { corners }
}

/// The samples of a block of positions. First [`set_positions`](Tile::set_positions), then
/// [`sample`](Tile::sample) taps, as often as needed.
pub(super) struct Tile {
    positions: usize,
    poses: usize,
    taps: usize,
    pixels: Range<usize>,
    locations: Box<Locations>,
    /// The frames of each pose.
    frames: Vec<Frames>,
    /// Offset in pixels from the first corner of a sample to each corner.
    corners: [usize; CORNERS],
    /// The first corners, `[tap, pose, LANES]`.
    pixel: Vec<u32>,
    /// Weights of the corners, `[tap, pose, corner, LANES]`.
    weight: Vec<f32>,
    /// `weight * cos d` and `weight * sin d`, where d is the angle of the corner's frame relative to
    /// the position's, in the same order; for relative-pose kernels only.
    relative: Option<[Vec<f32>; 2]>,
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
            locations: Box::default(),
            frames: Vec::new(),
            corners: [0; CORNERS],
            pixel: Vec::new(),
            weight: Vec::new(),
            relative: None,
            exact: Vec::new(),
            inside: Inside::default(),
        }
    }
}

impl Tile {
    /// Loads locations and frames of `positions`, at most [`POSITIONS`].
    pub(super) fn set_positions(&mut self, taps: &TapTable, positions: Positions) {
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
        self.locations.load(taps, positions);
        self.frames.resize(self.poses, Frames::default());
        for (pose, frames) in self.frames.iter_mut().enumerate() {
            frames.load(taps, positions, pose);
        }
    }

    /// Computes the samples of the taps `range`, in row-major order of the kernel, and partitions
    /// them.
    pub(super) fn sample(
        &mut self,
        taps: &TapTable,
        range: Range<usize>,
        relative_pose: bool,
        cut: Cut,
    ) {
        let kernel_size = taps.kernel_size();
        let size = [taps.input_grid().width, taps.input_grid().height];
        self.taps = range.len();
        let [right, below] = [size[0].min(2) - 1, (size[1].min(2) - 1) * size[0]];
        self.corners = [0, right, below, below + right];
        let len = range.len() * self.poses * LANES;
        self.pixel.resize(len, 0);
        self.weight.resize(CORNERS * len, 0.0);
        self.relative = relative_pose.then(|| self.relative.take().unwrap_or_default());
        self.exact.clear();
        self.inside.begin(range.len(), self.positions, cut);
        let mut pixels = self.pixel.chunks_exact_mut(LANES);
        let mut weights = self.weight.chunks_exact_mut(CORNERS * LANES);
        for (index, tap) in range.enumerate() {
            let centred = |index: usize| index as f32 - (kernel_size / 2) as f32;
            let tap = [centred(tap % kernel_size), centred(tap / kernel_size)];
            for ((frames, pixel), weight) in self.frames.iter().zip(&mut pixels).zip(&mut weights) {
                let (inside, occupied) = (self.inside.flags(index), taps.occupied());
                let samples = Samples { pixel, weight, inside, occupied };
                let exact = sample_tap(tap, size, &self.locations, frames, self.positions, samples);
                self.exact.push(exact);
            }
        }
        self.inside.finish();
        if let (Some([cos, sin]), Some(directions)) = (&mut self.relative, taps.input_directions())
        {
            cos.resize(CORNERS * len, 0.0);
            sin.resize(CORNERS * len, 0.0);
            for (index, &exact) in self.exact.iter().enumerate() {
                let frames = &self.frames[index % self.poses];
                for (corner, offset) in used_corners(&self.corners, exact).iter().enumerate() {
                    for lane in 0..self.positions {
                        let pixel = self.pixel[index * LANES + lane] as usize + offset;
                        let own = Complex32::new(frames.cos[lane], frames.sin[lane]);
                        let difference = directions[pixel] * own.conj();
                        let at = (index * CORNERS + corner) * LANES + lane;
                        cos[at] = self.weight[at] * difference.re;
                        sin[at] = self.weight[at] * difference.im;
                    }
                }
            }
        }
    }

    /// The parts of the sampled taps.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.inside.parts()
    }

    /// Whether samples outside the image are skipped.
    pub(super) fn skips_outside(&self) -> bool {
        self.inside.skips_outside()
    }

    /// A bit per position of the run that starts at `position`: whether its sample of `tap` is not
    /// skipped.
    #[inline(always)]
    pub(super) fn mask(&self, tap: usize, position: usize) -> u8 {
        self.inside.mask(tap, position)
    }

    /// Number of positions.
    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    /// Number of poses per position.
    pub(super) fn poses(&self) -> usize {
        self.poses
    }

    /// Number of taps last sampled.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// The pixels of the tile's images within the batch: all samples are among them.
    pub(super) fn pixels(&self) -> Range<usize> {
        self.pixels.clone()
    }

    /// Whether samples have the weights of relative-pose kernels.
    pub(super) fn is_relative(&self) -> bool {
        self.relative.is_some()
    }

    /// Values per tap in a row of the panel.
    pub(super) fn tap_width(&self, channels: usize) -> usize {
        if self.is_relative() { 3 * channels } else { channels }
    }

    /// `[tap, pose]`: whether all samples lie exactly on pixels. Then only the first corner is
    /// defined. This holds for the centre of the kernel where the grids agree, and for every tap of a
    /// plain convolution.
    pub(super) fn exact(&self) -> &[bool] {
        &self.exact
    }

    /// Offset in pixels from the first corner of any sample to each of its corners.
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
        match &self.relative {
            Some([cos, sin]) => [&self.weight, cos, sin],
            None => [&self.weight, &[], &[]],
        }
    }
}

/// Output of [`sample_tap`]: `pixel` `[LANES]`, `weight` `[corner, LANES]` and, if requested, 1 for
/// samples inside the image, in occupied cells if these are given.
struct Samples<'a> {
    pixel: &'a mut [u32],
    weight: &'a mut [f32],
    inside: Option<&'a mut [u8; LANES]>,
    occupied: Option<&'a [u8]>,
}

fn sample_tap(
    tap: [f32; 2],
    size: [usize; 2],
    locations: &Locations,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: AVX-512 is available.
        return unsafe { sample_tap_avx512(tap, size, locations, frames, positions, samples) };
    } else if crate::simd::has_avx2() {
        // SAFETY: AVX2 and FMA are available.
        return unsafe { sample_tap_avx2(tap, size, locations, frames, positions, samples) };
    }
    sample_tap_lanes(tap, size, locations, frames, positions, samples)
}

/// [`sample_tap_lanes`] compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn sample_tap_avx2(
    tap: [f32; 2],
    size: [usize; 2],
    locations: &Locations,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    sample_tap_lanes(tap, size, locations, frames, positions, samples)
}

/// [`sample_tap_lanes`] compiled for AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sample_tap_avx512(
    tap: [f32; 2],
    size: [usize; 2],
    locations: &Locations,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    sample_tap_lanes(tap, size, locations, frames, positions, samples)
}

/// The samples of one tap in one pose. Returns whether all lie exactly on pixels; then only the first
/// corner is defined.
#[inline(always)]
fn sample_tap_lanes(
    [tx, ty]: [f32; 2],
    [width, height]: [usize; 2],
    locations: &Locations,
    frames: &Frames,
    positions: usize,
    samples: Samples,
) -> bool {
    let positions = positions.min(LANES);
    let Samples { pixel, weight, inside, occupied } = samples;
    let (pixel, weight) = (&mut pixel[..LANES], &mut weight[..CORNERS * LANES]);
    let locate = |i: usize| {
        let (cos, sin) = (frames.step_cos[i], frames.step_sin[i]);
        let x =
            Coordinate::new(locations.x_cell[i], locations.x_fraction[i] + (cos * tx - sin * ty));
        let y =
            Coordinate::new(locations.y_cell[i], locations.y_fraction[i] + (sin * tx + cos * ty));
        (x, y)
    };
    let mut fractions = 0;
    for i in 0..positions {
        let (x, y) = locate(i);
        let (column, x_weights) = x.neighbours(width);
        let (row, y_weights) = y.neighbours(height);
        pixel[i] = locations.first_pixel[i] + row * width as u32 + column;
        let weights = [frames.weight[i] * y_weights[0], frames.weight[i] * y_weights[1]];
        for corner in 0..CORNERS {
            weight[corner * LANES + i] = weights[corner / 2] * x_weights[corner % 2];
        }
        fractions |= x.fraction.to_bits() | y.fraction.to_bits();
    }
    if let Some(inside) = inside {
        for i in 0..positions {
            let sum = weight[i] + weight[LANES + i] + weight[2 * LANES + i] + weight[3 * LANES + i];
            let flag = u8::from(sum != 0.0);
            inside[i] |= match occupied {
                None => flag,
                Some(occupied) => flag & occupied[pixel[i] as usize],
            };
        }
    }
    if fractions != 0 {
        return false;
    }
    for i in 0..positions {
        let (x, y) = locate(i);
        let (column, x_inside) = x.nearest(width);
        let (row, y_inside) = y.nearest(height);
        pixel[i] = locations.first_pixel[i] + row * width as u32 + column;
        weight[i] = if x_inside & y_inside { frames.weight[i] } else { 0.0 };
    }
    true
}

/// A coordinate along one axis: an integer and a fraction in 0..1.
struct Coordinate {
    low: f32,
    fraction: f32,
}

/// Comparisons are written such that coordinates outside and NaN get weight 0. Sizes are at least 1
/// and at most 2^24.
impl Coordinate {
    #[inline(always)]
    fn new(cell: f32, offset: f32) -> Self {
        let floor = offset.floor();
        Self { low: cell + floor, fraction: offset - floor }
    }

    /// The first of two neighbouring cells inside (the only one if `size` is 1), and the weights of
    /// both.
    #[inline(always)]
    fn neighbours(&self, size: usize) -> (u32, [f32; 2]) {
        let (near, cell) = clamp(self.low, size.max(2) - 2);
        let coordinate = (self.low - near) + self.fraction;
        let weight = |at: f32| {
            let weight = 1.0 - (coordinate - at).abs();
            if weight > 0.0 { weight } else { 0.0 }
        };
        let second = if size > 1 { 1.0 } else { f32::INFINITY };
        (cell, [weight(0.0), weight(second)])
    }

    /// The cell of an integer coordinate, clamped to the axis, and whether it was inside.
    #[inline(always)]
    fn nearest(&self, size: usize) -> (u32, bool) {
        let (near, cell) = clamp(self.low, size - 1);
        (cell, near == self.low)
    }
}

/// `value`, an integer or NaN, clamped to `0..=last`.
#[inline(always)]
fn clamp(value: f32, last: usize) -> (f32, u32) {
    let last = last as f32;
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < last { value } else { last };
    // SAFETY: it is in 0..=last, which is less than 2^24.
    (value, unsafe { value.to_int_unchecked::<i32>() } as u32)
}
