//! The loops of [`super::gather`] with AVX2 and AVX-512.
//!
//! The innermost functions are `inline(always)`, so that they are compiled with the target features of
//! their callers.

mod sample;

use std::arch::x86_64::{__m256, __m512};

use self::sample::{exchange_sample, interpolate, interpolate_narrow, scatter_sample};
use super::inside::RUN;
use super::runs::{Run, Runs};
use super::tile::{CORNERS, LANES, Tile};
use super::vector::Vector;
use crate::simd::{has_avx512, has_fast_avx512_stores};

/// # Safety
/// AVX2 and FMA are available; `panel` has room for the tile's rows of `pitch` values, and `input`
/// holds all pixels of the tile, `channels` values each.
pub(super) unsafe fn gather(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let function = if has_avx512() { avx512::gather } else { avx2::gather };
    // SAFETY: by this function's contract.
    unsafe { function(panel, pitch, input, channels, tile) }
}

/// # Safety
/// AVX2 and FMA are available; `panel` holds the tile's rows of `pitch` values, and all pixels of the
/// tile, `channels` values each, are writable, counted from `zero`.
pub(super) unsafe fn scatter(
    zero: *mut f32,
    panel: *const f32,
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    let function = if has_fast_avx512_stores() { avx512::scatter } else { avx2::scatter };
    // SAFETY: by this function's contract.
    unsafe { function(zero, panel, pitch, channels, tile) }
}

/// [`scatter`], then [`gather`] into the same panel, for one pose and one sum per tap.
///
/// # Safety
/// As both; `input` and the written pixels do not overlap.
pub(super) unsafe fn exchange(
    zero: *mut f32,
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let function = if has_fast_avx512_stores() { avx512::exchange } else { avx2::exchange };
    // SAFETY: by this function's contract.
    unsafe { function(zero, panel, pitch, input, channels, tile) }
}

/// The loops with one instruction set, specialised for common numbers of channels.
macro_rules! loops {
    ($set:ident, $vector:ty, $features:literal) => {
        mod $set {
            use super::*;

            /// # Safety
            /// As [`super::gather`], and the instructions are available.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn gather(
                panel: *mut f32,
                pitch: usize,
                input: *const f32,
                channels: usize,
                tile: &Tile,
            ) {
                type V = $vector;
                let shifted = is_shifted::<V>(input, channels);
                // SAFETY: by this function's contract.
                unsafe {
                    match (channels, tile.is_relative(), shifted) {
                        (1, false, _) => gather_narrow::<1>(panel, pitch, input, tile),
                        (2, false, _) => gather_narrow::<2>(panel, pitch, input, tile),
                        (3, false, _) => gather_narrow::<3>(panel, pitch, input, tile),
                        (16, false, _) => {
                            gather_loops::<V, 1, false>(panel, pitch, input, 16, tile)
                        }
                        (32, false, _) => {
                            gather_loops::<V, 1, false>(panel, pitch, input, 32, tile)
                        }
                        (64, false, false) => {
                            gather_loops::<V, 1, false>(panel, pitch, input, 64, tile)
                        }
                        (64, false, true) => {
                            gather_loops::<V, 1, true>(panel, pitch, input, 64, tile)
                        }
                        (_, false, false) => {
                            gather_loops::<V, 1, false>(panel, pitch, input, channels, tile)
                        }
                        (_, false, true) => {
                            gather_loops::<V, 1, true>(panel, pitch, input, channels, tile)
                        }
                        (_, true, false) => {
                            gather_loops::<V, 3, false>(panel, pitch, input, channels, tile)
                        }
                        (_, true, true) => {
                            gather_loops::<V, 3, true>(panel, pitch, input, channels, tile)
                        }
                    }
                }
            }

            /// # Safety
            /// As [`super::scatter`], and the instructions are available.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn scatter(
                zero: *mut f32,
                panel: *const f32,
                pitch: usize,
                channels: usize,
                tile: &Tile,
            ) {
                type V = $vector;
                // SAFETY: by this function's contract.
                unsafe {
                    match (tile.is_relative(), is_shifted::<V>(zero, channels)) {
                        (false, false) => {
                            scatter_loops::<V, 1, false>(zero, panel, pitch, channels, tile)
                        }
                        (false, true) => {
                            scatter_loops::<V, 1, true>(zero, panel, pitch, channels, tile)
                        }
                        (true, false) => {
                            scatter_loops::<V, 3, false>(zero, panel, pitch, channels, tile)
                        }
                        (true, true) => {
                            scatter_loops::<V, 3, true>(zero, panel, pitch, channels, tile)
                        }
                    }
                }
            }

            /// # Safety
            /// As [`super::exchange`], and the instructions are available.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn exchange(
                zero: *mut f32,
                panel: *mut f32,
                pitch: usize,
                input: *const f32,
                channels: usize,
                tile: &Tile,
            ) {
                type V = $vector;
                // SAFETY: by this function's contract.
                unsafe {
                    match (channels, tile.skips_outside()) {
                        (16, false) => {
                            exchange_loops::<V, false>(zero, panel, pitch, input, 16, tile)
                        }
                        (32, true) => {
                            exchange_loops::<V, true>(zero, panel, pitch, input, 32, tile)
                        }
                        (64, true) => {
                            exchange_loops::<V, true>(zero, panel, pitch, input, 64, tile)
                        }
                        _ => exchange_loops::<V, true>(zero, panel, pitch, input, channels, tile),
                    }
                }
            }
        }
    };
}

loops!(avx2, __m256, "avx2,fma");
loops!(avx512, __m512, "avx512f");

/// Whether pixels start 16 bytes after a vector boundary, as in large allocations of most systems.
/// Then a first partial vector aligns all others. With fewer channels it does not pay.
fn is_shifted<V: Vector>(pixels: *const f32, channels: usize) -> bool {
    let bytes = V::WIDTH * size_of::<f32>();
    pixels.addr() % bytes == 16 && channels.is_multiple_of(V::WIDTH) && channels >= 64
}

/// Gathers `BLOCKS` sums per tap; `SHIFTED` as [`is_shifted`].
///
/// # Safety
/// As [`gather`].
#[inline(always)]
unsafe fn gather_loops<V: Vector, const BLOCKS: usize, const SHIFTED: bool>(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let mut runs = Runs::<BLOCKS>::of(tile, RUN);
    while let Some(Run { position, positions, tap, pose, exact, sample, .. }) = runs.next() {
        // SAFETY: the run's pixels are in `input` and the tap's values in `panel` by this
        // function's contract.
        unsafe {
            let out = panel.add(position * pitch + tap * BLOCKS * channels);
            for i in 0..positions {
                let (out, sample) = (out.add(i * pitch), sample.add(i));
                match (exact, pose > 0) {
                    (false, false) => interpolate::<V, BLOCKS, CORNERS, false, SHIFTED>(
                        out, input, channels, sample,
                    ),
                    (false, true) => interpolate::<V, BLOCKS, CORNERS, true, SHIFTED>(
                        out, input, channels, sample,
                    ),
                    (true, false) => {
                        interpolate::<V, BLOCKS, 1, false, SHIFTED>(out, input, channels, sample)
                    }
                    (true, true) => {
                        interpolate::<V, BLOCKS, 1, true, SHIFTED>(out, input, channels, sample)
                    }
                }
            }
        }
    }
}

/// [`gather_loops`] for pixels narrower than a vector.
///
/// # Safety
/// As [`gather`], with `CHANNELS` channels and one sum per tap.
#[inline(always)]
unsafe fn gather_narrow<const CHANNELS: usize>(
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    tile: &Tile,
) {
    let mut runs = Runs::<1>::of(tile, LANES);
    while let Some(Run { position, positions, tap, pose, exact, sample, .. }) = runs.next() {
        // SAFETY: the run's pixels are in `input` and the tap's values in `panel` by this
        // function's contract.
        unsafe {
            let out = panel.add(position * pitch + tap * CHANNELS);
            for i in 0..positions {
                let (out, sample) = (out.add(i * pitch), sample.add(i));
                match exact {
                    false => interpolate_narrow::<CHANNELS, CORNERS>(out, input, sample, pose > 0),
                    true => interpolate_narrow::<CHANNELS, 1>(out, input, sample, pose > 0),
                }
            }
        }
    }
}

/// The adjoint of [`gather_loops`].
///
/// # Safety
/// As [`scatter`].
#[inline(always)]
unsafe fn scatter_loops<V: Vector, const BLOCKS: usize, const SHIFTED: bool>(
    zero: *mut f32,
    panel: *const f32,
    pitch: usize,
    channels: usize,
    tile: &Tile,
) {
    let mut runs = Runs::<BLOCKS>::of(tile, RUN);
    while let Some(Run { position, positions, tap, exact, mask, sample, .. }) = runs.next() {
        // SAFETY: the run's pixels are writable and the tap's values in `panel` readable by this
        // function's contract.
        unsafe {
            let from = panel.add(position * pitch + tap * BLOCKS * channels);
            for i in 0..positions {
                if mask >> i & 1 == 0 {
                    continue;
                }
                let (from, sample) = (from.add(i * pitch), sample.add(i));
                match exact {
                    false => {
                        scatter_sample::<V, BLOCKS, CORNERS, SHIFTED>(zero, from, channels, sample)
                    }
                    true => scatter_sample::<V, BLOCKS, 1, SHIFTED>(zero, from, channels, sample),
                }
            }
        }
    }
}

/// `SKIPS_OUTSIDE` may be false only if the tile skips nothing.
///
/// # Safety
/// As [`exchange`].
#[inline(always)]
unsafe fn exchange_loops<V: Vector, const SKIPS_OUTSIDE: bool>(
    zero: *mut f32,
    panel: *mut f32,
    pitch: usize,
    input: *const f32,
    channels: usize,
    tile: &Tile,
) {
    let mut runs = Runs::<1>::of(tile, RUN);
    while let Some(Run { position, positions, tap, exact, mask, sample, .. }) = runs.next() {
        // SAFETY: the run's pixels are in `input` and writable, and the tap's values are in `panel`,
        // by this function's contract.
        unsafe {
            let patch = panel.add(position * pitch + tap * channels);
            for i in 0..positions {
                if SKIPS_OUTSIDE && mask >> i & 1 == 0 {
                    continue;
                }
                let (patch, sample) = (patch.add(i * pitch), sample.add(i));
                match exact {
                    false => exchange_sample::<V, CORNERS>(zero, patch, input, channels, sample),
                    true => exchange_sample::<V, 1>(zero, patch, input, channels, sample),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sren_math::{Grid, Pose};

    use super::*;
    use crate::simconv::inside::Cut;
    use crate::simconv::positions::Positions;
    use crate::simd::LineBuffer;
    use crate::{PoseField, TapTable};

    type Gather = unsafe fn(*mut f32, usize, *const f32, usize, &Tile);
    type Scatter = unsafe fn(*mut f32, *const f32, usize, usize, &Tile);
    type Exchange = unsafe fn(*mut f32, *mut f32, usize, *const f32, usize, &Tile);

    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| (((i + seed) * 7919 % 1009) as f32 - 504.0) / 300.0).collect()
    }

    /// The results of one instruction set for a tile: the gathered panel, the scattered pixels, and
    /// both after an exchange. Pixels start `shift` values after a cache line.
    fn results(
        tile: &Tile,
        channels: usize,
        shift: usize,
        (gather, scatter, exchange): (Gather, Scatter, Exchange),
    ) -> [Vec<f32>; 4] {
        let pixels = tile.pixels().end * channels;
        let pitch = tile.taps() * tile.tap_width(channels) + 3;
        let rows = tile.positions() * pitch;
        let (mut input, mut output) = (LineBuffer::default(), LineBuffer::default());
        let input = &mut input.take(shift + pixels)[shift..];
        input.copy_from_slice(&values(pixels, 5));
        let output = &mut output.take(shift + pixels)[shift..];
        output.copy_from_slice(&values(pixels, 8));
        let (mut panel, grads) = (vec![0.5; rows], values(rows, 77));
        let mut swapped = grads.clone();
        // SAFETY: all buffers have the size of the tile, and the caller has checked the instructions.
        unsafe {
            gather(panel.as_mut_ptr(), pitch, input.as_ptr(), channels, tile);
            scatter(output.as_mut_ptr(), grads.as_ptr(), pitch, channels, tile);
            let scattered = output.to_vec();
            if tile.poses() == 1 && !tile.is_relative() {
                let (output, swapped) = (output.as_mut_ptr(), swapped.as_mut_ptr());
                exchange(output, swapped, pitch, input.as_ptr(), channels, tile);
            }
            [panel, scattered, swapped, output.to_vec()]
        }
    }

    #[test]
    fn avx2_and_avx512_agree() {
        if !has_avx512() {
            println!("skipped: AVX-512 is not available");
            return;
        }
        let grid = Grid::pixels(9, 7);
        let poses = |scale| vec![Pose { scale, angle: 0.4 }; 2];
        for (scale, relative_pose) in [(1.3, false), (1.3, true), (1.0, false)] {
            let identity = PoseField::identity(grid, 2).unwrap();
            let field = match scale {
                1.0 => identity,
                _ => identity.composed(&poses(scale)).unwrap(),
            };
            let taps = TapTable::new(&field, &grid, 3, 1.0, false).unwrap();
            let taps = taps.with_input_poses(&field).unwrap();
            let mut tile = Tile::default();
            tile.set_positions(&taps, Positions::Range(3, 117));
            tile.sample(&taps, 0..9, relative_pose, Cut::Whole);
            for channels in [1, 2, 3, 4, 7, 8, 15, 16, 21, 32, 64, 80] {
                for shift in [0, 1, 4] {
                    let narrow = (avx2::gather as _, avx2::scatter as _, avx2::exchange as _);
                    let wide = (avx512::gather as _, avx512::scatter as _, avx512::exchange as _);
                    let narrow = results(&tile, channels, shift, narrow);
                    assert!(narrow[0] != narrow[2] || relative_pose, "{channels}");
                    assert_eq!(narrow, results(&tile, channels, shift, wide), "{channels} {shift}");
                }
            }
        }
    }
}
