//! The innermost loops of every matrix product here: a strip of 16 columns, or two, s = 0 and 1,
//!
//! ```text
//! c[r * c_row + 16 s + j] = start[r][16 s + j]
//!     + sum_d a[r * a_row + d * a_depth] * b[s * b_strip + d * b_depth + j]
//! ```
//! in blocks of up to 6 rows, which 12 AVX registers hold while both operands stream by, or of up to
//! 12 rows of both strips in 24 AVX-512 registers, or of 16 neighbouring rows of one. As either operand may have any strides, this serves the
//! forward product and both products of the gradients, and panels need no packing. Every sum is
//! taken in the same order, so that AVX and AVX-512 give the same to the last bit.

/// Rows of a full block.
pub(super) const ROWS: usize = 6;

/// Columns of a strip: those of a cache line.
pub(super) const COLUMNS: usize = crate::simd::LINE;

/// What the sums of a strip are added to.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Nothing.
    Zero,
    /// What the product holds.
    Product,
    /// The same 16 values, or 32, in every row.
    Row(*const f32),
}

/// Where the operands of a strip begin and how far their neighbours are.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) a: *const f32,
    pub(super) a_row: usize,
    pub(super) a_depth: usize,
    pub(super) b: *const f32,
    pub(super) b_depth: usize,
    /// One or two,
    pub(super) strips: usize,
    /// the second so far behind the first.
    pub(super) b_strip: usize,
    pub(super) c: *mut f32,
    pub(super) c_row: usize,
    pub(super) start: Start,
}

impl Strip {
    /// One of the strips by itself.
    fn only(self, strip: usize) -> Self {
        let start = match self.start {
            Start::Row(row) => Start::Row(row.wrapping_add(strip * COLUMNS)),
            other => other,
        };
        let b = self.b.wrapping_add(strip * self.b_strip);
        Self { strips: 1, b, c: self.c.wrapping_add(strip * COLUMNS), start, ..self }
    }
}

/// Computes a strip, or two, in the best version for this machine.
///
/// # Safety
/// For every r below `rows`, d below `depth`, s below `strips`, j below [`COLUMNS`], the places that
/// the formula above names, and the values of a starting row, must be inside their slices, and those
/// of `c` overlap none of the others.
pub(super) unsafe fn multiply_strip(strip: Strip) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: by this function's contract, and AVX-512 is there.
        return unsafe { avx512::multiply_strip(strip) };
    }
    for strip in (0..strip.strips).map(|index| strip.only(index)) {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx2() {
            // SAFETY: by this function's contract, and AVX2 and FMA are there.
            unsafe { avx2::multiply_strip(strip) };
            continue;
        }
        // SAFETY: by this function's contract.
        for_each_block(strip, ROWS, |strip| unsafe {
            match strip.rows {
                1 => portable::<1>(strip),
                2 => portable::<2>(strip),
                3 => portable::<3>(strip),
                4 => portable::<4>(strip),
                5 => portable::<5>(strip),
                _ => portable::<6>(strip),
            }
        });
    }
}

/// Cuts a strip into blocks of at most `most` rows, the last two alike: two blocks of 4 keep the
/// arithmetic busier than one of 6 and one of 2.
#[inline(always)]
fn for_each_block(strip: Strip, most: usize, mut visit: impl FnMut(Strip)) {
    let mut row = 0;
    while row < strip.rows {
        let rows = match strip.rows - row {
            left if left <= most => left,
            left if left < 2 * most => left.div_ceil(2),
            _ => most,
        };
        visit(Strip {
            rows,
            a: strip.a.wrapping_add(row * strip.a_row),
            c: strip.c.wrapping_add(row * strip.c_row),
            ..strip
        });
        row += rows;
    }
}

/// # Safety
/// As for [`multiply_strip`], with `R` rows.
unsafe fn portable<const R: usize>(block: Strip) {
    const FUSED: bool = cfg!(target_arch = "aarch64");
    let mut sums = [[0.0f32; COLUMNS]; R];
    for d in 0..block.depth {
        // SAFETY: by this function's contract.
        let row = unsafe { &*block.b.add(d * block.b_depth).cast::<[f32; COLUMNS]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: by this function's contract.
            let a = unsafe { *block.a.add(r * block.a_row + d * block.a_depth) };
            for (sum, b) in sums.iter_mut().zip(row) {
                *sum = if FUSED { a.mul_add(*b, *sum) } else { *sum + a * b };
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: by this function's contract.
        let row = unsafe { &mut *block.c.add(r * block.c_row).cast::<[f32; COLUMNS]>() };
        match block.start {
            Start::Zero => row.copy_from_slice(sums),
            Start::Product => row.iter_mut().zip(sums).for_each(|(c, sum)| *c += sum),
            Start::Row(start) => {
                // SAFETY: by this function's contract.
                let start = unsafe { &*start.cast::<[f32; COLUMNS]>() };
                row.iter_mut().zip(sums.iter().zip(start)).for_each(|(c, (a, b))| *c = a + b);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX2")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, ROWS, Start, Strip, for_each_block, opaque};

    /// # Safety
    /// As for [`super::multiply_strip`], on a machine with AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn multiply_strip(strip: Strip) {
        if let Strip { depth: SHALLOW, a_depth: 1, b_depth: COLUMNS, start: Start::Zero, .. } =
            strip
        {
            // SAFETY: passed on.
            return unsafe { shallow_strip(strip) };
        }
        // SAFETY: passed on.
        for_each_block(strip, ROWS, |strip| unsafe {
            match strip.rows {
                1 => block::<1>(strip),
                2 => block::<2>(strip),
                3 => block::<3>(strip),
                4 => block::<4>(strip),
                5 => block::<5>(strip),
                _ => block::<6>(strip),
            }
        });
    }

    /// Depth that is worth loops of its own: 16 channels, whose steps are too few to hide what
    /// [`block`] does before and after them.
    const SHALLOW: usize = 16;

    /// Rows of a block of such a depth.
    const SHALLOW_ROWS: usize = 4;

    /// # Safety
    /// As for [`multiply_strip`], with contiguous operands of depth 16 that are added to nothing.
    #[inline(always)]
    unsafe fn shallow_strip(strip: Strip) {
        for row in (0..strip.rows).step_by(SHALLOW_ROWS) {
            // SAFETY: by this function's contract; rows after the last are this once more.
            unsafe {
                let mut sums = [[_mm256_setzero_ps(); 2]; SHALLOW_ROWS];
                let at = |r: usize| (row + r).min(strip.rows - 1);
                let mut rows = [strip.a; SHALLOW_ROWS];
                for r in 0..SHALLOW_ROWS {
                    rows[r] = strip.a.add(at(r) * strip.a_row);
                }
                // In two loops, as the compiler unrolls short ones only.
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
                    let c = strip.c.add(at(r) * strip.c_row);
                    _mm256_storeu_ps(c, sums[r][0]);
                    _mm256_storeu_ps(c.add(8), sums[r][1]);
                }
            }
        }
    }

    /// # Safety
    /// As for [`super::multiply_strip`], with `R` rows, on a machine with AVX2 and FMA.
    #[inline(always)]
    unsafe fn block<const R: usize>(block: Strip) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; R];
            let mut rows = [block.a; R];
            for r in 0..R {
                rows[r] = block.a.wrapping_add(opaque(r * block.a_row));
            }
            let (mut at, mut b) = (0, block.b);
            for _ in 0..block.depth {
                let left = _mm256_loadu_ps(b);
                let right = _mm256_loadu_ps(b.add(8));
                for r in 0..R {
                    let value = _mm256_broadcast_ss(&*rows[r].add(at));
                    sums[r][0] = _mm256_fmadd_ps(value, left, sums[r][0]);
                    sums[r][1] = _mm256_fmadd_ps(value, right, sums[r][1]);
                }
                at += block.a_depth;
                b = b.wrapping_add(block.b_depth);
            }
            for r in 0..R {
                let c = block.c.add(r * block.c_row);
                let start = match block.start {
                    Start::Zero => std::ptr::null(),
                    Start::Product => c.cast_const(),
                    Start::Row(start) => start,
                };
                if !start.is_null() {
                    sums[r][0] = _mm256_add_ps(_mm256_loadu_ps(start), sums[r][0]);
                    sums[r][1] = _mm256_add_ps(_mm256_loadu_ps(start.add(8)), sums[r][1]);
                }
                _mm256_storeu_ps(c, sums[r][0]);
                _mm256_storeu_ps(c.add(8), sums[r][1]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX-512")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, Start, Strip, for_each_block, opaque};

    /// Rows of a full block: as many as there are registers for their addresses.
    const ROWS: usize = 12;

    /// # Safety
    /// As for [`super::multiply_strip`], on a machine with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn multiply_strip(mut strip: Strip) {
        // Neighbouring rows need one address for all, and 16 of them read a whole cache line.
        if let Strip { strips: 1, a_row: 1, .. } = strip {
            // SAFETY: passed on, block after block.
            unsafe {
                while strip.rows >= COLUMNS {
                    block::<COLUMNS, 1, true>(strip);
                    strip.rows -= COLUMNS;
                    strip.a = strip.a.wrapping_add(COLUMNS);
                    strip.c = strip.c.wrapping_add(COLUMNS * strip.c_row);
                }
            }
        }
        // SAFETY: passed on.
        for_each_block(strip, ROWS, |block| unsafe {
            match block.strips {
                1 => rows_of::<1>(block),
                _ => rows_of::<2>(block),
            }
        });
    }

    /// # Safety
    /// As for [`super::multiply_strip`], with `S` strips, on a machine with AVX-512.
    #[inline(always)]
    unsafe fn rows_of<const S: usize>(strip: Strip) {
        // SAFETY: passed on.
        unsafe {
            match strip.rows {
                1 => block::<1, S, false>(strip),
                2 => block::<2, S, false>(strip),
                3 => block::<3, S, false>(strip),
                4 => block::<4, S, false>(strip),
                5 => block::<5, S, false>(strip),
                6 => block::<6, S, false>(strip),
                7 => block::<7, S, false>(strip),
                8 => block::<8, S, false>(strip),
                9 => block::<9, S, false>(strip),
                10 => block::<10, S, false>(strip),
                11 => block::<11, S, false>(strip),
                _ => block::<12, S, false>(strip),
            }
        }
    }

    /// # Safety
    /// As for [`super::multiply_strip`], with `R` rows, which may be `NEIGHBOURS`, and `S` strips, on
    /// a machine with AVX-512.
    #[inline(always)]
    unsafe fn block<const R: usize, const S: usize, const NEIGHBOURS: bool>(block: Strip) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); S]; R];
            let mut rows = [block.a; R];
            for r in 0..R {
                rows[r] = match NEIGHBOURS {
                    true => block.a.wrapping_add(r),
                    false => block.a.wrapping_add(opaque(r * block.a_row)),
                };
            }
            let (mut at, mut b) = (0, block.b);
            for _ in 0..block.depth {
                let mut right = [_mm512_setzero_ps(); S];
                for s in 0..S {
                    right[s] = _mm512_loadu_ps(b.add(s * block.b_strip));
                }
                for r in 0..R {
                    let value = _mm512_set1_ps(*rows[r].add(at));
                    for s in 0..S {
                        sums[r][s] = _mm512_fmadd_ps(value, right[s], sums[r][s]);
                    }
                }
                at += block.a_depth;
                b = b.wrapping_add(block.b_depth);
            }
            match block.start {
                Start::Zero => {}
                Start::Product => add_rows(&mut sums, block.c, block.c_row),
                Start::Row(row) => add_rows(&mut sums, row, 0),
            }
            for r in 0..R {
                for s in 0..S {
                    _mm512_storeu_ps(block.c.add(r * block.c_row + s * COLUMNS), sums[r][s]);
                }
            }
        }
    }

    /// Adds the rows at `from`, `distance` values apart.
    ///
    /// # Safety
    /// They can be read, on a machine with AVX-512.
    #[inline(always)]
    unsafe fn add_rows<const R: usize, const S: usize>(
        sums: &mut [[__m512; S]; R],
        from: *const f32,
        distance: usize,
    ) {
        for r in 0..R {
            for s in 0..S {
                // SAFETY: by this function's contract.
                unsafe {
                    let row = _mm512_loadu_ps(from.add(r * distance + s * COLUMNS));
                    sums[r][s] = _mm512_add_ps(row, sums[r][s]);
                }
            }
        }
    }
}

/// The same distance, but the compiler does not know that: it would otherwise step from row to
/// row by a chain of additions, which takes longer than the arithmetic in between.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn opaque(mut distance: usize) -> usize {
    use std::arch::asm;
    // SAFETY: no instruction at all.
    unsafe {
        asm!("/* {0} */", inout(reg) distance, options(pure, nomem, nostack, preserves_flags));
    }
    distance
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// The product of two strips in the given version, of rows that follow each other or are
    /// neighbours.
    fn product(
        [rows, depth]: [usize; 2],
        neighbours: bool,
        start: u8,
        version: fn(Strip),
    ) -> Vec<f32> {
        let value = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 300.0;
        let [a_row, a_depth] = if neighbours { [1, rows + 3] } else { [depth + 3, 1] };
        let c_row = 2 * COLUMNS + 5;
        let a: Vec<f32> = (0..(rows + 3) * (depth + 3)).map(value).collect();
        let b: Vec<f32> = (0..2 * depth * COLUMNS).map(|i| value(i + 31)).collect();
        let row: Vec<f32> = (0..2 * COLUMNS).map(|i| value(i + 77)).collect();
        let mut c: Vec<f32> = (0..rows * c_row).map(|i| value(i + 5)).collect();
        let start = match start {
            0 => Start::Zero,
            1 => Start::Product,
            _ => Start::Row(row.as_ptr()),
        };
        let (a, b, place) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (b_depth, b_strip) = (COLUMNS, depth * COLUMNS);
        let strip = Strip {
            rows,
            depth,
            a,
            a_row,
            a_depth,
            b,
            b_depth,
            strips: 2,
            b_strip,
            c: place,
            c_row,
            start,
        };
        version(strip);
        c
    }

    #[test]
    fn all_versions_give_the_same() {
        let sizes = [[1, 1], [5, 16], [6, 16], [11, 7], [12, 40], [25, 16], [40, 300]];
        for (size, case) in sizes.into_iter().flat_map(|size| (0..6).map(move |case| (size, case)))
        {
            let (neighbours, start) = (case >= 3, case % 3);
            let product = |version: fn(Strip)| product(size, neighbours, start, version);
            // Operands are as large as their strips say, each its own: all of these are sound.
            let portable = product(|strip| {
                for strip in [strip.only(0), strip.only(1)] {
                    // SAFETY: see above.
                    for_each_block(strip, 1, |strip| unsafe { portable::<1>(strip) });
                }
            });
            if !crate::simd::has_avx2() {
                continue;
            }
            let narrow = product(|strip| {
                for strip in [strip.only(0), strip.only(1)] {
                    // SAFETY: see above; AVX2 is there.
                    unsafe { avx2::multiply_strip(strip) }
                }
            });
            let far = |a: f32, b: f32| (a - b).abs() > 1e-3;
            assert!(!portable.iter().zip(&narrow).any(|(a, b)| far(*a, *b)), "{size:?} {case}");
            if crate::simd::has_avx512() {
                // SAFETY: see above; AVX-512 is there.
                let wide = product(|strip| unsafe { avx512::multiply_strip(strip) });
                assert_eq!(narrow, wide, "{size:?} {case}");
                let one_by_one = product(|strip| {
                    for strip in [strip.only(0), strip.only(1)] {
                        // SAFETY: see above; AVX-512 is there.
                        unsafe { avx512::multiply_strip(strip) }
                    }
                });
                assert_eq!(narrow, one_by_one, "{size:?} {case}");
            }
        }
    }
}
