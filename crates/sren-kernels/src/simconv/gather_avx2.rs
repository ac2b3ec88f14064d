//! The loops of [`super::gather`] in AVX2.
//!
//! The innermost functions are `inline(always)` and so become part of the `target_feature`
//! functions; closures and iterator adapters on vectors would not, so there are none.

use std::arch::x86_64::*;

use super::tile::{CORNERS, LANES, Tile};

/// Values of a vector.
const VECTOR: usize = 8;

/// # Safety
/// AVX2 and FMA are there; `panel` has room for the tile's rows of `pitch` values, and `input`
/// holds all pixels of the tile, `channels` values each.
pub(super) unsafe fn gather(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    // The common numbers of channels, known at compile time.
    let function = match (channels, tile.is_turned()) {
        (1, false) => gather_loops::<1, 1>,
        (16, false) => gather_loops::<16, 1>,
        (32, false) => gather_loops::<32, 1>,
        (64, false) => gather_loops::<64, 1>,
        (_, false) => gather_loops::<0, 1>,
        (16, true) => gather_loops::<16, 3>,
        (32, true) => gather_loops::<32, 3>,
        (_, true) => gather_loops::<0, 3>,
    };
    // SAFETY: passed on.
    unsafe { function(panel, pitch, input, channels, tile) }
}

/// # Safety
/// AVX2 and FMA are there; `panel` holds the tile's rows of `pitch` values, and all pixels of the
/// tile, `channels` values each, may be written, counted from `zero`.
pub(super) unsafe fn scatter(
    zero: *mut f32,
    panel: *const f32,
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    let function = match (channels, tile.is_turned()) {
        (1, false) => scatter_loops::<1, 1>,
        (16, false) => scatter_loops::<16, 1>,
        (32, false) => scatter_loops::<32, 1>,
        (64, false) => scatter_loops::<64, 1>,
        (_, false) => scatter_loops::<0, 1>,
        (16, true) => scatter_loops::<16, 3>,
        (32, true) => scatter_loops::<32, 3>,
        (_, true) => scatter_loops::<0, 3>,
    };
    // SAFETY: passed on.
    unsafe { function(zero, panel, pitch, channels, tile) }
}

/// Gathers `BLOCKS` sums a tap; `CHANNELS` is 0 or the number of channels.
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx2,fma")]
unsafe fn gather_loops<const CHANNELS: usize, const BLOCKS: usize>(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let channels = if CHANNELS > 0 { CHANNELS } else { channels };
    let samples = Sampled::<BLOCKS>::new(tile);
    let poses = tile.poses();
    for position in 0..tile.positions() {
        for tap in 0..tile.taps() {
            // SAFETY: the tile has samples for this tap and position in all its poses; its pixels
            // lie in `input` and the tap's place in `panel` by this function's contract.
            unsafe {
                let out = panel.add(position * pitch + tap * BLOCKS * channels);
                blend::<BLOCKS, false>(out, input, channels, samples.get(tap * poses, position));
                for pose in 1..poses {
                    let sample = samples.get(tap * poses + pose, position);
                    blend::<BLOCKS, true>(out, input, channels, sample);
                }
            }
        }
    }
}

/// The adjoint of [`gather_loops`].
///
/// # Safety
/// As [`scatter`].
#[target_feature(enable = "avx2,fma")]
unsafe fn scatter_loops<const CHANNELS: usize, const BLOCKS: usize>(
    zero: *mut f32,
    panel: *const f32,
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    let channels = if CHANNELS > 0 { CHANNELS } else { channels };
    let samples = Sampled::<BLOCKS>::new(tile);
    let poses = tile.poses();
    for position in 0..tile.positions() {
        for tap in 0..tile.taps() {
            for pose in 0..poses {
                // SAFETY: the tile has samples for these tap, pose and position; its pixels may be
                // written and the tap's place in `panel` read by this function's contract.
                unsafe {
                    let from = panel.add(position * pitch + tap * BLOCKS * channels);
                    let sample = samples.get(tap * poses + pose, position);
                    spread::<BLOCKS>(zero, from, channels, sample);
                }
            }
        }
    }
}

/// Where a tile's samples begin.
struct Sampled<const BLOCKS: usize> {
    pixel: *const u32,
    weight: [*const f32; BLOCKS],
}

/// One sample: the first of its four corners, [`LANES`] values from one to the next.
#[derive(Clone, Copy)]
struct Sample<const BLOCKS: usize> {
    pixel: *const u32,
    weight: [*const f32; BLOCKS],
}

impl<const BLOCKS: usize> Sampled<BLOCKS> {
    fn new(tile: &Tile) -> Self {
        let mut weight = [std::ptr::null(); BLOCKS];
        for (weight, weights) in weight.iter_mut().zip(tile.weights()) {
            *weight = weights.as_ptr();
        }
        Self { pixel: tile.sampled_pixels().as_ptr(), weight }
    }

    /// # Safety
    /// There are more than `index` samples a position, and more than `position` positions.
    #[inline(always)]
    unsafe fn get(&self, index: usize, position: usize) -> Sample<BLOCKS> {
        let at = index * CORNERS * LANES + position;
        let mut weight = self.weight;
        // SAFETY: by this function's contract.
        unsafe {
            for weight in weight.iter_mut() {
                *weight = weight.add(at);
            }
            Sample { pixel: self.pixel.add(at), weight }
        }
    }
}

/// Writes, or with `ADD` adds, the sums of a sample to `out` `[BLOCKS, channels]`.
///
/// # Safety
/// AVX2 and FMA are there, `out` has room, and the sample's pixels lie in `input`.
#[inline(always)]
unsafe fn blend<const BLOCKS: usize, const ADD: bool>(
    out: *mut f32,
    input: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut from = [input; CORNERS];
        let mut weight = [[_mm256_setzero_ps(); CORNERS]; BLOCKS];
        for corner in 0..CORNERS {
            from[corner] = input.add(*sample.pixel.add(corner * LANES) as usize * channels);
            for block in 0..BLOCKS {
                weight[block][corner] =
                    _mm256_broadcast_ss(&*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        while i + VECTOR <= channels {
            let a = _mm256_loadu_ps(from[0].add(i));
            let b = _mm256_loadu_ps(from[1].add(i));
            let c = _mm256_loadu_ps(from[2].add(i));
            let d = _mm256_loadu_ps(from[3].add(i));
            for block in 0..BLOCKS {
                let out = out.add(block * channels + i);
                let weight = weight[block];
                let mut sum = _mm256_mul_ps(weight[0], a);
                let mut other = _mm256_mul_ps(weight[1], b);
                if ADD {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(out));
                }
                sum = _mm256_fmadd_ps(weight[2], c, sum);
                other = _mm256_fmadd_ps(weight[3], d, other);
                _mm256_storeu_ps(out, _mm256_add_ps(sum, other));
            }
            i += VECTOR;
        }
        while i < channels {
            for block in 0..BLOCKS {
                let out = out.add(block * channels + i);
                let mut sum = if ADD { *out } else { 0.0 };
                for corner in 0..CORNERS {
                    let weight = _mm256_cvtss_f32(weight[block][corner]);
                    sum += weight * *from[corner].add(i);
                }
                *out = sum;
            }
            i += 1;
        }
    }
}

/// The adjoint of [`blend`]: adds the gradients at `from` `[BLOCKS, channels]` to the pixels.
/// Corners may be the same pixel: each is read after the one before was written.
///
/// # Safety
/// AVX2 and FMA are there, `from` can be read, and the sample's pixels, counted from `zero`, can be
/// written.
#[inline(always)]
unsafe fn spread<const BLOCKS: usize>(
    zero: *mut f32,
    from: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut to = [zero; CORNERS];
        let mut weight = [[_mm256_setzero_ps(); BLOCKS]; CORNERS];
        for corner in 0..CORNERS {
            let pixel = *sample.pixel.add(corner * LANES) as usize;
            to[corner] = zero.wrapping_add(pixel * channels);
            for block in 0..BLOCKS {
                weight[corner][block] =
                    _mm256_broadcast_ss(&*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        while i + VECTOR <= channels {
            let mut value = [_mm256_setzero_ps(); BLOCKS];
            for block in 0..BLOCKS {
                value[block] = _mm256_loadu_ps(from.add(block * channels + i));
            }
            for corner in 0..CORNERS {
                let to = to[corner].add(i);
                let mut sum = _mm256_loadu_ps(to);
                for block in 0..BLOCKS {
                    sum = _mm256_fmadd_ps(weight[corner][block], value[block], sum);
                }
                _mm256_storeu_ps(to, sum);
            }
            i += VECTOR;
        }
        while i < channels {
            for corner in 0..CORNERS {
                let to = to[corner].add(i);
                for block in 0..BLOCKS {
                    let weight = _mm256_cvtss_f32(weight[corner][block]);
                    *to += weight * *from.add(block * channels + i);
                }
            }
            i += 1;
        }
    }
}
