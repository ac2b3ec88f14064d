//! The loops with AVX-512.

#![allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX-512")]

use std::arch::x86_64::*;

use super::{Base, COLUMNS, Strip, next_block};
use crate::simconv::positions::Positions;

/// Rows of a full block: the number of registers for their addresses.
const ROWS: usize = 12;

/// # Safety
/// As for [`super::multiply_strip`], on a processor with AVX-512.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn multiply_strip(strip: Strip) {
    // SAFETY: by this function's contract.
    unsafe {
        match (strip.strips, strip.transposed, strip.rows) {
            (1, false, _) => in_blocks::<1, false, false>(strip),
            (1, true, Positions::Range(..)) => in_blocks::<1, true, false>(strip),
            (1, true, Positions::List(_)) => in_blocks::<1, true, true>(strip),
            (_, false, _) => in_blocks::<2, false, false>(strip),
            (_, true, Positions::Range(..)) => in_blocks::<2, true, false>(strip),
            (_, true, Positions::List(_)) => in_blocks::<2, true, true>(strip),
        }
    }
}

/// # Safety
/// As for [`multiply_strip`], with `S` strips of a left operand that is `TRANSPOSED` or not, and then
/// `LISTED` or not.
#[inline(always)]
unsafe fn in_blocks<const S: usize, const TRANSPOSED: bool, const LISTED: bool>(strip: Strip) {
    let (all, mut row) = (strip.to.len(), 0);
    if S == 1 && TRANSPOSED {
        // Neighbouring values share one address, so that a block can have 16 rows: a cache line.
        while row + COLUMNS <= all {
            // SAFETY: by this function's contract.
            unsafe { block::<COLUMNS, 1, true, LISTED>(strip.slice(row, row + COLUMNS)) };
            row += COLUMNS;
        }
    }
    while let Some(rows) = next_block(row, all, ROWS) {
        let strip = strip.slice(row, row + rows);
        row += rows;
        // SAFETY: by this function's contract.
        unsafe {
            match rows {
                1 => block::<1, S, TRANSPOSED, LISTED>(strip),
                2 => block::<2, S, TRANSPOSED, LISTED>(strip),
                3 => block::<3, S, TRANSPOSED, LISTED>(strip),
                4 => block::<4, S, TRANSPOSED, LISTED>(strip),
                5 => block::<5, S, TRANSPOSED, LISTED>(strip),
                6 => block::<6, S, TRANSPOSED, LISTED>(strip),
                7 => block::<7, S, TRANSPOSED, LISTED>(strip),
                8 => block::<8, S, TRANSPOSED, LISTED>(strip),
                9 => block::<9, S, TRANSPOSED, LISTED>(strip),
                10 => block::<10, S, TRANSPOSED, LISTED>(strip),
                11 => block::<11, S, TRANSPOSED, LISTED>(strip),
                _ => block::<12, S, TRANSPOSED, LISTED>(strip),
            }
        }
    }
}

/// # Safety
/// As [`in_blocks`], with `R` rows.
#[inline(always)]
unsafe fn block<const R: usize, const S: usize, const TRANSPOSED: bool, const LISTED: bool>(
    block: Strip,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let sums = match TRANSPOSED {
            false => sums_of_rows::<R, S>(block),
            true => sums_of_columns::<R, S, LISTED>(block),
        };
        let mut to = [block.c; R];
        let numbers = block.to.first::<R>();
        for r in 0..R {
            to[r] = block.c.wrapping_add(numbers[r] * block.c_row);
        }
        match block.base {
            Base::Zero => store::<R, S, false>(sums, to),
            Base::Product => store::<R, S, true>(sums, to),
        }
    }
}

/// `R` sums of products with `S` strips, a vector each.
type Sums<const R: usize, const S: usize> = [[__m512; S]; R];

/// # Safety
/// As [`block`], not transposed.
#[inline(always)]
unsafe fn sums_of_rows<const R: usize, const S: usize>(block: Strip) -> Sums<R, S> {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); S]; R];
        // Rows are indexed from their ends, so that the index reaches 0 after the last step.
        let mut ends = [block.a.wrapping_add(block.columns); R];
        let numbers = block.rows.first::<R>();
        for r in 0..R {
            ends[r] = ends[r].wrapping_add(numbers[r] * block.a_row);
        }
        let (mut at, mut b) = (-(block.columns as isize), block.b);
        while at < 0 {
            let right = right_row::<S>(b, block.b_strip);
            for r in 0..R {
                let left = _mm512_set1_ps(*ends[r].wrapping_offset(at));
                for s in 0..S {
                    sums[r][s] = _mm512_fmadd_ps(left, right[s], sums[r][s]);
                }
            }
            (at, b) = (at + 1, b.wrapping_add(COLUMNS));
        }
        sums
    }
}

/// # Safety
/// As [`block`], transposed.
#[inline(always)]
unsafe fn sums_of_columns<const R: usize, const S: usize, const LISTED: bool>(
    block: Strip,
) -> Sums<R, S> {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); S]; R];
        let (first, list) = block.first_row();
        let mut a = block.a.wrapping_add(first * block.a_row);
        let mut b = block.b.wrapping_add(first * block.b_row);
        for step in 0..block.rows.len() {
            if LISTED {
                let row = *list.get_unchecked(step) as usize;
                a = block.a.wrapping_add(row * block.a_row);
                b = block.b.wrapping_add(row * block.b_row);
            }
            let right = right_row::<S>(b, block.b_strip);
            for r in 0..R {
                let left = _mm512_set1_ps(*a.add(r));
                for s in 0..S {
                    sums[r][s] = _mm512_fmadd_ps(left, right[s], sums[r][s]);
                }
            }
            if !LISTED {
                (a, b) = (a.wrapping_add(block.a_row), b.wrapping_add(block.b_row));
            }
        }
        sums
    }
}

/// A row of `S` strips.
///
/// # Safety
/// It is readable, on a processor with AVX-512.
#[inline(always)]
unsafe fn right_row<const S: usize>(b: *const f32, strip: usize) -> [__m512; S] {
    // SAFETY: by this function's contract.
    unsafe {
        let mut right = [_mm512_setzero_ps(); S];
        for s in 0..S {
            right[s] = _mm512_loadu_ps(b.wrapping_add(s * strip));
        }
        right
    }
}

/// Writes, or with `ADD` adds, sums to the rows that begin at `to`.
///
/// # Safety
/// These are writable, on a processor with AVX-512.
#[inline(always)]
unsafe fn store<const R: usize, const S: usize, const ADD: bool>(
    sums: Sums<R, S>,
    to: [*mut f32; R],
) {
    for r in 0..R {
        for s in 0..S {
            // SAFETY: by this function's contract.
            unsafe {
                let place = to[r].add(s * COLUMNS);
                let sum = match ADD {
                    false => sums[r][s],
                    true => _mm512_add_ps(_mm512_loadu_ps(place), sums[r][s]),
                };
                _mm512_storeu_ps(place, sum);
            }
        }
    }
}
