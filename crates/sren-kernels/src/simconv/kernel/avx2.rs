//! The loops with AVX2.

#![allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX2")]

use std::arch::x86_64::*;

use super::{Base, COLUMNS, ROWS, Strip, next_block};
use crate::simconv::positions::Positions;

/// # Safety
/// As for [`super::multiply_strip`], on a processor with AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn multiply_strip(strip: Strip) {
    if let Strip { columns: SHALLOW, transposed: false, base: Base::Zero, .. } = strip {
        for s in 0..strip.strips {
            // SAFETY: by this function's contract.
            unsafe { shallow_strip(strip.only(s)) };
        }
        return;
    }
    // SAFETY: by this function's contract.
    unsafe {
        match (strip.transposed, strip.rows) {
            (false, _) => in_blocks::<false, false>(strip),
            (true, Positions::Range(..)) => in_blocks::<true, false>(strip),
            (true, Positions::List(_)) => in_blocks::<true, true>(strip),
        }
    }
}

/// # Safety
/// As for [`multiply_strip`], with a left operand that is `TRANSPOSED` or not, and then `LISTED` or
/// not.
#[inline(always)]
unsafe fn in_blocks<const TRANSPOSED: bool, const LISTED: bool>(strip: Strip) {
    let mut row = 0;
    while let Some(rows) = next_block(row, strip.to.len(), ROWS) {
        let strip = strip.slice(row, row + rows);
        row += rows;
        // SAFETY: by this function's contract.
        unsafe {
            match rows {
                1 => block::<1, TRANSPOSED, LISTED>(strip),
                2 => block::<2, TRANSPOSED, LISTED>(strip),
                3 => block::<3, TRANSPOSED, LISTED>(strip),
                4 => block::<4, TRANSPOSED, LISTED>(strip),
                5 => block::<5, TRANSPOSED, LISTED>(strip),
                _ => block::<6, TRANSPOSED, LISTED>(strip),
            }
        }
    }
}

/// Depth with separate loops: 16 channels, too few steps to hide the overhead of [`block`].
const SHALLOW: usize = 16;

/// Rows of a block of such a depth.
const SHALLOW_ROWS: usize = 4;

/// # Safety
/// As for [`multiply_strip`], with rows of 16 values and the base zero.
#[inline(always)]
unsafe fn shallow_strip(strip: Strip) {
    let count = strip.to.len();
    for row in (0..count).step_by(SHALLOW_ROWS) {
        // SAFETY: by this function's contract; rows after the last repeat it.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; SHALLOW_ROWS];
            let at = |r: usize| (row + r).min(count - 1);
            let mut rows = [strip.a; SHALLOW_ROWS];
            for r in 0..SHALLOW_ROWS {
                rows[r] = strip.a.add(strip.rows.get(at(r)) * strip.a_row);
            }
            // Two loops, because the compiler unrolls only short ones.
            for first in (0..SHALLOW).step_by(4) {
                for d in first..first + 4 {
                    let left = _mm256_loadu_ps(strip.b.add(d * COLUMNS));
                    let right = _mm256_loadu_ps(strip.b.add(d * COLUMNS + 8));
                    for r in 0..SHALLOW_ROWS {
                        let value = _mm256_broadcast_ss(&*rows[r].add(d));
                        sums[r][0] = _mm256_fmadd_ps(value, left, sums[r][0]);
                        sums[r][1] = _mm256_fmadd_ps(value, right, sums[r][1]);
                    }
                }
            }
            for r in 0..SHALLOW_ROWS {
                let c = strip.c.add(strip.to.get(at(r)) * strip.c_row);
                _mm256_storeu_ps(c, sums[r][0]);
                _mm256_storeu_ps(c.add(8), sums[r][1]);
            }
        }
    }
}

/// # Safety
/// As [`in_blocks`], with `R` rows.
#[inline(always)]
unsafe fn block<const R: usize, const TRANSPOSED: bool, const LISTED: bool>(block: Strip) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut to = [block.c; R];
        let numbers = block.to.first::<R>();
        for r in 0..R {
            to[r] = block.c.wrapping_add(numbers[r] * block.c_row);
        }
        let mut ends = [block.a.wrapping_add(block.columns); R];
        if !TRANSPOSED {
            let numbers = block.rows.first::<R>();
            for r in 0..R {
                ends[r] = ends[r].wrapping_add(numbers[r] * block.a_row);
            }
        }
        // One strip after the other: the registers hold only one.
        for s in 0..block.strips {
            let strip = block.only(s);
            let sums = match TRANSPOSED {
                false => sums_of_rows::<R>(strip, ends),
                true => sums_of_columns::<R, LISTED>(strip),
            };
            for r in 0..R {
                for half in 0..2 {
                    let to = to[r].wrapping_add(s * COLUMNS + half * 8);
                    let sum = match block.base {
                        Base::Zero => sums[r][half],
                        Base::Product => _mm256_add_ps(_mm256_loadu_ps(to), sums[r][half]),
                    };
                    _mm256_storeu_ps(to, sum);
                }
            }
        }
    }
}

/// Rows are indexed from their `ends`, so that the index reaches 0 after the last step.
///
/// # Safety
/// As [`block`], not transposed, of one strip.
#[inline(always)]
unsafe fn sums_of_rows<const R: usize>(block: Strip, ends: [*const f32; R]) -> [[__m256; 2]; R] {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        let (mut at, mut b) = (-(block.columns as isize), block.b);
        while at < 0 {
            let right = [_mm256_loadu_ps(b), _mm256_loadu_ps(b.wrapping_add(8))];
            for r in 0..R {
                let left = _mm256_broadcast_ss(&*ends[r].wrapping_offset(at));
                sums[r][0] = _mm256_fmadd_ps(left, right[0], sums[r][0]);
                sums[r][1] = _mm256_fmadd_ps(left, right[1], sums[r][1]);
            }
            (at, b) = (at + 1, b.wrapping_add(COLUMNS));
        }
        sums
    }
}

/// # Safety
/// As [`block`], transposed, of one strip.
#[inline(always)]
unsafe fn sums_of_columns<const R: usize, const LISTED: bool>(block: Strip) -> [[__m256; 2]; R] {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        let (first, list) = block.first_row();
        let mut a = block.a.wrapping_add(first * block.a_row);
        let mut b = block.b.wrapping_add(first * block.b_row);
        for step in 0..block.rows.len() {
            if LISTED {
                let row = *list.get_unchecked(step) as usize;
                a = block.a.wrapping_add(row * block.a_row);
                b = block.b.wrapping_add(row * block.b_row);
            }
            let right = [_mm256_loadu_ps(b), _mm256_loadu_ps(b.wrapping_add(8))];
            for r in 0..R {
                let left = _mm256_broadcast_ss(&*a.add(r));
                sums[r][0] = _mm256_fmadd_ps(left, right[0], sums[r][0]);
                sums[r][1] = _mm256_fmadd_ps(left, right[1], sums[r][1]);
            }
            if !LISTED {
                (a, b) = (a.wrapping_add(block.a_row), b.wrapping_add(block.b_row));
            }
        }
        sums
    }
}
