//! The loops of [`super::gather`] in AVX2.
//!
//! The innermost functions are `inline(always)` and so become part of the `target_feature` functions.

#![allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX2")]

use std::arch::x86_64::*;

use super::tile::{CORNERS, LANES, Tile};

/// Values of a vector and of half a vector.
const VECTOR: usize = 8;
const HALF: usize = VECTOR / 2;

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
    let function = match (channels, tile.is_turned(), is_shifted(input, channels)) {
        (1, false, _) => gather_narrow::<1>,
        (2, false, _) => gather_narrow::<2>,
        (3, false, _) => gather_narrow::<3>,
        (16, false, _) => gather_loops::<16, 1, false>,
        (32, false, _) => gather_loops::<32, 1, false>,
        (64, false, false) => gather_loops::<64, 1, false>,
        (64, false, true) => gather_loops::<64, 1, true>,
        (_, false, false) => gather_loops::<0, 1, false>,
        (_, false, true) => gather_loops::<0, 1, true>,
        (_, true, false) => gather_loops::<0, 3, false>,
        (_, true, true) => gather_loops::<0, 3, true>,
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
    let function = match (tile.is_turned(), is_shifted(zero, channels)) {
        (false, false) => scatter_loops::<1, false>,
        (false, true) => scatter_loops::<1, true>,
        (true, false) => scatter_loops::<3, false>,
        (true, true) => scatter_loops::<3, true>,
    };
    // SAFETY: passed on.
    unsafe { function(zero, panel, pitch, channels, tile) }
}

/// [`scatter`], then [`gather`] into the same panel, for one pose and one sum a tap.
///
/// # Safety
/// As both; `input` and the pixels that are written do not overlap.
pub(super) unsafe fn exchange(
    zero: *mut f32,
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let function = match channels {
        16 => exchange_loops::<16>,
        32 => exchange_loops::<32>,
        _ => exchange_loops::<0>,
    };
    // SAFETY: passed on.
    unsafe { function(zero, panel, pitch, input, channels, tile) }
}

/// Whether pixels begin half a vector after a vector's place in a cache line, as they do in large
/// allocations of most systems. Then half a vector first makes all others fit into their lines; for
/// fewer channels than these it would not pay.
fn is_shifted(pixels: *const f32, channels: usize) -> bool {
    pixels.addr() % 32 == 16 && channels.is_multiple_of(VECTOR) && channels >= 64
}

/// Positions whose samples of one tap are taken in a row: few enough for the next tap to find their
/// pixels in the first-level cache.
const RUN: usize = 8;

/// Gathers `BLOCKS` sums a tap; `CHANNELS` is 0 or the number of channels, `SHIFTED` as
/// [`is_shifted`].
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx2,fma")]
unsafe fn gather_loops<const CHANNELS: usize, const BLOCKS: usize, const SHIFTED: bool>(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let channels = if CHANNELS > 0 { CHANNELS } else { channels };
    for_each_run(tile, RUN, |run: Run<BLOCKS>, tap, pose, exact| {
        // SAFETY: the run's pixels lie in `input` and the tap's place in `panel` by this
        // function's contract.
        unsafe {
            let out = panel.add(run.position * pitch + tap * BLOCKS * channels);
            for i in 0..run.positions {
                let (out, sample) = (out.add(i * pitch), run.sample.add(i));
                match (exact, pose > 0) {
                    (false, false) => {
                        blend::<BLOCKS, CORNERS, false, SHIFTED>(out, input, channels, sample)
                    }
                    (false, true) => {
                        blend::<BLOCKS, CORNERS, true, SHIFTED>(out, input, channels, sample)
                    }
                    (true, false) => {
                        blend::<BLOCKS, 1, false, SHIFTED>(out, input, channels, sample)
                    }
                    (true, true) => blend::<BLOCKS, 1, true, SHIFTED>(out, input, channels, sample),
                }
            }
        }
    });
}

/// [`gather_loops`] for pixels narrower than a vector.
///
/// # Safety
/// As [`gather`], with `CHANNELS` channels and one sum a tap.
#[target_feature(enable = "avx2,fma")]
unsafe fn gather_narrow<const CHANNELS: usize>(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    _channels: usize,
    tile: &Tile,
) {
    for_each_run(tile, LANES, |run: Run<1>, tap, pose, exact| {
        // SAFETY: the run's pixels lie in `input` and the tap's place in `panel` by this
        // function's contract.
        unsafe {
            let out = panel.add(run.position * pitch + tap * CHANNELS);
            for i in 0..run.positions {
                let (out, sample) = (out.add(i * pitch), run.sample.add(i));
                match exact {
                    false => blend_narrow::<CHANNELS, CORNERS>(out, input, sample, pose > 0),
                    true => blend_narrow::<CHANNELS, 1>(out, input, sample, pose > 0),
                }
            }
        }
    });
}

/// The adjoint of [`gather_loops`].
///
/// # Safety
/// As [`scatter`].
#[target_feature(enable = "avx2,fma")]
unsafe fn scatter_loops<const BLOCKS: usize, const SHIFTED: bool>(
    zero: *mut f32,
    panel: *const f32,
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    for_each_run(tile, RUN, |run: Run<BLOCKS>, tap, _, exact| {
        // SAFETY: the run's pixels may be written and the tap's place in `panel` read by this
        // function's contract.
        unsafe {
            let from = panel.add(run.position * pitch + tap * BLOCKS * channels);
            for i in 0..run.positions {
                let (from, sample) = (from.add(i * pitch), run.sample.add(i));
                match exact {
                    false => spread::<BLOCKS, CORNERS, SHIFTED>(zero, from, channels, sample),
                    true => spread::<BLOCKS, 1, SHIFTED>(zero, from, channels, sample),
                }
            }
        }
    });
}

/// [`exchange`]; `CHANNELS` is 0 or the number of channels.
///
/// # Safety
/// As [`exchange`].
#[target_feature(enable = "avx2,fma")]
unsafe fn exchange_loops<const CHANNELS: usize>(
    zero: *mut f32,
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let channels = if CHANNELS > 0 { CHANNELS } else { channels };
    for_each_run(tile, RUN, |run: Run<1>, tap, _, exact| {
        // SAFETY: the run's pixels lie in `input` and may be written, and the tap's place is in
        // `panel`, by this function's contract.
        unsafe {
            let patch = panel.add(run.position * pitch + tap * channels);
            for i in 0..run.positions {
                let (patch, sample) = (patch.add(i * pitch), run.sample.add(i));
                match exact {
                    false => swap::<CORNERS>(zero, patch, input, channels, sample),
                    true => swap::<1>(zero, patch, input, channels, sample),
                }
            }
        }
    });
}

/// Consecutive positions and the sample of the first; those of the others follow it.
struct Run<'a, const BLOCKS: usize> {
    position: usize,
    positions: usize,
    sample: Sample<'a, BLOCKS>,
}

/// Visits all samples of a tile in runs of up to `length` positions, with their tap, their pose and
/// whether they are exact.
#[inline(always)]
fn for_each_run<const BLOCKS: usize>(
    tile: &Tile,
    length: usize,
    mut visit: impl FnMut(Run<BLOCKS>, usize, usize, bool),
) {
    let poses = tile.poses();
    for position in (0..tile.positions()).step_by(length) {
        let positions = length.min(tile.positions() - position);
        for tap in 0..tile.taps() {
            for pose in 0..poses {
                let index = tap * poses + pose;
                let sample = Sample::get(tile, index, position);
                visit(Run { position, positions, sample }, tap, pose, tile.exact()[index]);
            }
        }
    }
}

/// A sample: its first corner, the distances of all, their weights, [`LANES`] values from one to
/// the next.
#[derive(Clone, Copy)]
struct Sample<'a, const BLOCKS: usize> {
    pixel: *const u32,
    corners: &'a [usize; CORNERS],
    weight: [*const f32; BLOCKS],
}

impl<'a, const BLOCKS: usize> Sample<'a, BLOCKS> {
    /// The sample `index`, counted over taps and poses, of a position.
    #[inline(always)]
    fn get(tile: &'a Tile, index: usize, position: usize) -> Self {
        let weights = tile.weights();
        let mut weight = [std::ptr::null(); BLOCKS];
        for block in 0..BLOCKS {
            weight[block] = weights[block][index * CORNERS * LANES + position..].as_ptr();
        }
        let pixel = tile.sampled_pixels()[index * LANES + position..].as_ptr();
        Self { pixel, corners: tile.corners(), weight }
    }

    /// The same sample of the position that follows after `positions`.
    ///
    /// # Safety
    /// The tile has that position.
    #[inline(always)]
    unsafe fn add(mut self, positions: usize) -> Self {
        // SAFETY: by this function's contract.
        unsafe {
            self.pixel = self.pixel.add(positions);
            for block in 0..BLOCKS {
                self.weight[block] = self.weight[block].add(positions);
            }
        }
        self
    }
}

/// [`blend`] of `CHANNELS` values, one after the other.
///
/// # Safety
/// As [`blend`].
#[inline(always)]
unsafe fn blend_narrow<const CHANNELS: usize, const USED: usize>(
    out: *mut f32,
    input: *const f32,
    sample: Sample<1>,
    add: bool,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = *sample.pixel as usize;
        for i in 0..CHANNELS {
            let mut sum = if add { *out.add(i) } else { 0.0 };
            for corner in 0..USED {
                let pixel = first + sample.corners[corner];
                sum += *sample.weight[0].add(corner * LANES) * *input.add(pixel * CHANNELS + i);
            }
            *out.add(i) = sum;
        }
    }
}

/// Writes, or with `ADD` adds, the sums of a sample's first `USED` corners to `out`
/// `[BLOCKS, channels]`.
///
/// # Safety
/// AVX2 and FMA are there, `out` has room, and the sample's pixels lie in `input`.
#[inline(always)]
unsafe fn blend<const BLOCKS: usize, const USED: usize, const ADD: bool, const SHIFTED: bool>(
    out: *mut f32,
    input: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = input.add(*sample.pixel as usize * channels);
        let mut from = [first; USED];
        let mut weight = [[_mm256_setzero_ps(); USED]; BLOCKS];
        for corner in 0..USED {
            from[corner] = first.add(sample.corners[corner] * channels);
            for block in 0..BLOCKS {
                weight[block][corner] =
                    _mm256_broadcast_ss(&*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        if SHIFTED {
            blend_half::<BLOCKS, USED, ADD>(out, from, channels, weight, 0);
            blend_half::<BLOCKS, USED, ADD>(out, from, channels, weight, channels - HALF);
            i = HALF;
        }
        while i + VECTOR <= channels {
            let mut values = [_mm256_setzero_ps(); USED];
            for corner in 0..USED {
                values[corner] = _mm256_loadu_ps(from[corner].add(i));
            }
            for block in 0..BLOCKS {
                let out = out.add(block * channels + i);
                let weight = weight[block];
                let mut sum = _mm256_mul_ps(weight[0], values[0]);
                if ADD {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(out));
                }
                for corner in 1..USED {
                    sum = _mm256_fmadd_ps(weight[corner], values[corner], sum);
                }
                _mm256_storeu_ps(out, sum);
            }
            i += VECTOR;
        }
        while !SHIFTED && i < channels {
            for block in 0..BLOCKS {
                let out = out.add(block * channels + i);
                let mut sum = if ADD { *out } else { 0.0 };
                for corner in 0..USED {
                    sum += _mm256_cvtss_f32(weight[block][corner]) * *from[corner].add(i);
                }
                *out = sum;
            }
            i += 1;
        }
    }
}

/// Channels `i .. i + 4` of [`blend`].
///
/// # Safety
/// As [`blend`], whose sources and weights these are.
#[inline(always)]
unsafe fn blend_half<const BLOCKS: usize, const USED: usize, const ADD: bool>(
    out: *mut f32,
    from: [*const f32; USED],
    channels: usize,
    weight: [[__m256; USED]; BLOCKS],
    i: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut values = [_mm_setzero_ps(); USED];
        for corner in 0..USED {
            values[corner] = _mm_loadu_ps(from[corner].add(i));
        }
        for block in 0..BLOCKS {
            let out = out.add(block * channels + i);
            let mut sum = _mm_mul_ps(_mm256_castps256_ps128(weight[block][0]), values[0]);
            if ADD {
                sum = _mm_add_ps(sum, _mm_loadu_ps(out));
            }
            for corner in 1..USED {
                let weight = _mm256_castps256_ps128(weight[block][corner]);
                sum = _mm_fmadd_ps(weight, values[corner], sum);
            }
            _mm_storeu_ps(out, sum);
        }
    }
}

/// [`spread`] of `patch` `[channels]`, then [`blend`] in its place. Weights are read once, and reading
/// pixels and writing others take turns.
///
/// # Safety
/// As both.
#[inline(always)]
unsafe fn swap<const USED: usize>(
    zero: *mut f32,
    patch: *mut f32,
    input: *const f32,
    channels: usize,
    sample: Sample<1>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = *sample.pixel as usize * channels;
        let mut from = [input; USED];
        let mut to = [zero; USED];
        let mut weight = [_mm256_setzero_ps(); USED];
        for corner in 0..USED {
            let distance = sample.corners[corner] * channels;
            from[corner] = input.add(first).add(distance);
            to[corner] = zero.wrapping_add(first).add(distance);
            weight[corner] = _mm256_broadcast_ss(&*sample.weight[0].add(corner * LANES));
        }
        let mut i = 0;
        while i + VECTOR <= channels {
            let value = _mm256_loadu_ps(patch.add(i));
            let mut sum = _mm256_mul_ps(weight[0], _mm256_loadu_ps(from[0].add(i)));
            for corner in 1..USED {
                let pixel = _mm256_loadu_ps(from[corner].add(i));
                sum = _mm256_fmadd_ps(weight[corner], pixel, sum);
            }
            _mm256_storeu_ps(patch.add(i), sum);
            for corner in 0..USED {
                let to = to[corner].add(i);
                _mm256_storeu_ps(to, _mm256_fmadd_ps(weight[corner], value, _mm256_loadu_ps(to)));
            }
            i += VECTOR;
        }
        while i < channels {
            let (value, mut sum) = (*patch.add(i), 0.0);
            for corner in 0..USED {
                let weight = _mm256_cvtss_f32(weight[corner]);
                sum += weight * *from[corner].add(i);
                *to[corner].add(i) += weight * value;
            }
            *patch.add(i) = sum;
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
unsafe fn spread<const BLOCKS: usize, const USED: usize, const SHIFTED: bool>(
    zero: *mut f32,
    from: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = zero.wrapping_add(*sample.pixel as usize * channels);
        let mut to = [first; USED];
        let mut weight = [[_mm256_setzero_ps(); BLOCKS]; USED];
        for corner in 0..USED {
            to[corner] = first.add(sample.corners[corner] * channels);
            for block in 0..BLOCKS {
                weight[corner][block] =
                    _mm256_broadcast_ss(&*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        if SHIFTED {
            spread_half::<BLOCKS, USED>(to, from, channels, weight, 0);
            spread_half::<BLOCKS, USED>(to, from, channels, weight, channels - HALF);
            i = HALF;
        }
        while i + VECTOR <= channels {
            let mut value = [_mm256_setzero_ps(); BLOCKS];
            for block in 0..BLOCKS {
                value[block] = _mm256_loadu_ps(from.add(block * channels + i));
            }
            for corner in 0..USED {
                let to = to[corner].add(i);
                let mut sum = _mm256_loadu_ps(to);
                for block in 0..BLOCKS {
                    sum = _mm256_fmadd_ps(weight[corner][block], value[block], sum);
                }
                _mm256_storeu_ps(to, sum);
            }
            i += VECTOR;
        }
        while !SHIFTED && i < channels {
            for corner in 0..USED {
                let to = to[corner].add(i);
                for block in 0..BLOCKS {
                    let value = *from.add(block * channels + i);
                    *to += _mm256_cvtss_f32(weight[corner][block]) * value;
                }
            }
            i += 1;
        }
    }
}

/// Channels `i .. i + 4` of [`spread`].
///
/// # Safety
/// As [`spread`], whose places and weights these are.
#[inline(always)]
unsafe fn spread_half<const BLOCKS: usize, const USED: usize>(
    to: [*mut f32; USED],
    from: *const f32,
    channels: usize,
    weight: [[__m256; BLOCKS]; USED],
    i: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        for corner in 0..USED {
            let to = to[corner].add(i);
            let mut sum = _mm_loadu_ps(to);
            for block in 0..BLOCKS {
                let value = _mm_loadu_ps(from.add(block * channels + i));
                let weight = _mm256_castps256_ps128(weight[corner][block]);
                sum = _mm_fmadd_ps(weight, value, sum);
            }
            _mm_storeu_ps(to, sum);
        }
    }
}
