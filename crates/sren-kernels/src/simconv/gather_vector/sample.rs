//! One sample: the weighted sum of its pixels, and its adjoint.
//!
//! All functions are `inline(always)`, so that they are compiled with the target features of their
//! callers.

#![allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX2")]

use crate::simconv::runs::Sample;
use crate::simconv::tile::LANES;
use crate::simconv::vector::{HALF, Vector};

/// [`interpolate`] of `CHANNELS` values without vectors, equal bit by bit.
///
/// # Safety
/// As [`interpolate`].
#[inline(always)]
pub(super) unsafe fn interpolate_narrow<const CHANNELS: usize, const USED: usize>(
    out: *mut f32,
    input: *const f32,
    sample: Sample<1>,
    add: bool,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = *sample.pixel as usize;
        for i in 0..CHANNELS {
            let value = |corner: usize| *input.add((first + sample.corners[corner]) * CHANNELS + i);
            let weight = |corner: usize| *sample.weight[0].add(corner * LANES);
            let mut sum = weight(0) * value(0);
            if add {
                sum += *out.add(i);
            }
            for corner in 1..USED {
                sum = weight(corner).mul_add(value(corner), sum);
            }
            *out.add(i) = sum;
        }
    }
}

/// Writes, or with `ADD` adds, the sums of a sample's first `USED` corners to `out`
/// `[BLOCKS, channels]`.
///
/// # Safety
/// The vector's instructions are available, `out` has room, and the sample's pixels lie in `input`.
#[inline(always)]
pub(super) unsafe fn interpolate<
    V: Vector,
    const BLOCKS: usize,
    const USED: usize,
    const ADD: bool,
    const SHIFTED: bool,
>(
    out: *mut f32,
    input: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = input.add(*sample.pixel as usize * channels);
        let mut from = [first; USED];
        let mut weight = [[V::zero(); USED]; BLOCKS];
        for corner in 0..USED {
            from[corner] = first.add(sample.corners[corner] * channels);
            for block in 0..BLOCKS {
                weight[block][corner] = V::splat(*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        if SHIFTED {
            i = V::WIDTH - HALF;
            interpolate_part::<V, BLOCKS, USED, ADD>(out, from, channels, weight, 0, i);
        }
        while i + V::WIDTH <= channels {
            interpolate_part::<V, BLOCKS, USED, ADD>(out, from, channels, weight, i, V::WIDTH);
            i += V::WIDTH;
        }
        if i < channels {
            let rest = if SHIFTED { HALF } else { channels - i };
            interpolate_part::<V, BLOCKS, USED, ADD>(out, from, channels, weight, i, rest);
        }
    }
}

/// Channels `i .. i + count` of [`interpolate`].
///
/// # Safety
/// As [`interpolate`], whose sources and weights these are.
#[inline(always)]
unsafe fn interpolate_part<V: Vector, const BLOCKS: usize, const USED: usize, const ADD: bool>(
    out: *mut f32,
    from: [*const f32; USED],
    channels: usize,
    weight: [[V; USED]; BLOCKS],
    i: usize,
    count: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut values = [V::zero(); USED];
        for corner in 0..USED {
            values[corner] = V::load(from[corner].add(i), count);
        }
        for block in 0..BLOCKS {
            let out = out.add(block * channels + i);
            let mut sum = weight[block][0].mul(values[0]);
            if ADD {
                sum = sum.add(V::load(out, count));
            }
            for corner in 1..USED {
                sum = weight[block][corner].mul_add(values[corner], sum);
            }
            sum.store(out, count);
        }
    }
}

/// [`scatter_sample`] of `patch` `[channels]`, then [`interpolate`] into it. Weights are read once, and
/// reads and writes of pixels are interleaved.
///
/// # Safety
/// As both.
#[inline(always)]
pub(super) unsafe fn exchange_sample<V: Vector, const USED: usize>(
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
        let mut weight = [V::zero(); USED];
        for corner in 0..USED {
            let distance = sample.corners[corner] * channels;
            from[corner] = input.add(first).add(distance);
            to[corner] = zero.wrapping_add(first).add(distance);
            weight[corner] = V::splat(*sample.weight[0].add(corner * LANES));
        }
        let mut i = 0;
        while i + V::WIDTH <= channels {
            exchange_part(to, patch, from, weight, i, V::WIDTH);
            i += V::WIDTH;
        }
        if i < channels {
            exchange_part(to, patch, from, weight, i, channels - i);
        }
    }
}

/// Channels `i .. i + count` of [`exchange_sample`].
///
/// # Safety
/// As [`exchange_sample`], whose pixels and weights these are.
#[inline(always)]
unsafe fn exchange_part<V: Vector, const USED: usize>(
    to: [*mut f32; USED],
    patch: *mut f32,
    from: [*const f32; USED],
    weight: [V; USED],
    i: usize,
    count: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let value = V::load(patch.add(i), count);
        let mut sum = weight[0].mul(V::load(from[0].add(i), count));
        for corner in 1..USED {
            sum = weight[corner].mul_add(V::load(from[corner].add(i), count), sum);
        }
        sum.store(patch.add(i), count);
        for corner in 0..USED {
            let to = to[corner].add(i);
            weight[corner].mul_add(value, V::load(to, count)).store(to, count);
        }
    }
}

/// The adjoint of [`interpolate`]: adds the gradients at `from` `[BLOCKS, channels]` to the pixels.
/// Corners may be the same pixel: each is read after the previous one is written.
///
/// # Safety
/// The vector's instructions are available, `from` can be read, and the sample's pixels, counted from
/// `zero`, are writable.
#[inline(always)]
pub(super) unsafe fn scatter_sample<
    V: Vector,
    const BLOCKS: usize,
    const USED: usize,
    const SHIFTED: bool,
>(
    zero: *mut f32,
    from: *const f32,
    channels: usize,
    sample: Sample<BLOCKS>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let first = zero.wrapping_add(*sample.pixel as usize * channels);
        let mut to = [first; USED];
        let mut weight = [[V::zero(); BLOCKS]; USED];
        for corner in 0..USED {
            to[corner] = first.add(sample.corners[corner] * channels);
            for block in 0..BLOCKS {
                weight[corner][block] = V::splat(*sample.weight[block].add(corner * LANES));
            }
        }
        let mut i = 0;
        if SHIFTED {
            i = V::WIDTH - HALF;
            scatter_part::<V, BLOCKS, USED>(to, from, channels, weight, 0, i);
        }
        while i + V::WIDTH <= channels {
            scatter_part::<V, BLOCKS, USED>(to, from, channels, weight, i, V::WIDTH);
            i += V::WIDTH;
        }
        if i < channels {
            let rest = if SHIFTED { HALF } else { channels - i };
            scatter_part::<V, BLOCKS, USED>(to, from, channels, weight, i, rest);
        }
    }
}

/// Channels `i .. i + count` of [`scatter_sample`].
///
/// # Safety
/// As [`scatter_sample`], whose pixels and weights these are.
#[inline(always)]
unsafe fn scatter_part<V: Vector, const BLOCKS: usize, const USED: usize>(
    to: [*mut f32; USED],
    from: *const f32,
    channels: usize,
    weight: [[V; BLOCKS]; USED],
    i: usize,
    count: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut value = [V::zero(); BLOCKS];
        for block in 0..BLOCKS {
            value[block] = V::load(from.add(block * channels + i), count);
        }
        for corner in 0..USED {
            let to = to[corner].add(i);
            let mut sum = V::load(to, count);
            for block in 0..BLOCKS {
                sum = weight[corner][block].mul_add(value[block], sum);
            }
            sum.store(to, count);
        }
    }
}
