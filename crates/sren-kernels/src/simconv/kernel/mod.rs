//! The innermost loops of all matrix products: a strip of 16 columns, or two, s = 0 and 1,
//!
//! ```text
//! c[to[r] * c_row + 16 s + j] = base + sum_d left(r, d) * b[s * b_strip + d * b_row + j]
//! ```
//! of selected rows of a matrix `a`. These are the rows of the left operand,
//! `left(r, d) = a[rows[r] * a_row + d]`, or, transposed, the terms of its sums,
//! `left(r, d) = a[d * a_row + r]` for d in `rows`. This covers the forward product and both products
//! of the gradients without packing the panels.
//!
//! Blocks of up to 6 rows are accumulated in 12 AVX registers, blocks of up to 12 rows of two strips
//! in 24 AVX-512 registers. Sums are taken in the same order, so that AVX2 and AVX-512 agree bit by
//! bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::positions::Positions;

/// Rows of a full block.
pub(super) const ROWS: usize = 6;

/// Columns of a strip: those of a cache line.
pub(super) const COLUMNS: usize = crate::simd::LINE;

/// The initial value of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Zero.
    Zero,
    /// The previous content.
    Product,
}

/// Pointers to the operands of a strip, and their strides.
#[derive(Clone, Copy)]
pub(super) struct Strip<'a> {
    pub(super) a: *const f32,
    pub(super) a_row: usize,
    /// The selected rows of `a`.
    pub(super) rows: Positions<'a>,
    /// Values per row of `a`.
    pub(super) columns: usize,
    pub(super) transposed: bool,
    pub(super) b: *const f32,
    /// 16, if the left operand is not transposed.
    pub(super) b_row: usize,
    /// One or two.
    pub(super) strips: usize,
    /// Distance between the two strips of `b`.
    pub(super) b_strip: usize,
    pub(super) c: *mut f32,
    pub(super) c_row: usize,
    /// The rows of the product: as many as `rows`, or, transposed, as `columns`.
    pub(super) to: Positions<'a>,
    pub(super) base: Base,
}

impl<'a> Strip<'a> {
    /// The first selected row of `a` if the selection is a range, or else the list.
    #[inline(always)]
    fn first_row(&self) -> (usize, &'a [u32]) {
        match self.rows {
            Positions::Range(first, _) => (first, &[]),
            Positions::List(list) => (0, list),
        }
    }

    /// One of the strips.
    #[inline(always)]
    fn only(self, strip: usize) -> Self {
        let b = self.b.wrapping_add(strip * self.b_strip);
        Self { strips: 1, b, c: self.c.wrapping_add(strip * COLUMNS), ..self }
    }

    /// The rows `start..end` of the product.
    #[inline(always)]
    pub(super) fn slice(self, start: usize, end: usize) -> Self {
        let to = self.to.slice(start, end);
        match self.transposed {
            false => Self { rows: self.rows.slice(start, end), to, ..self },
            true => Self { a: self.a.wrapping_add(start), columns: end - start, to, ..self },
        }
    }
}

/// Whether two strips are computed together.
pub(super) fn takes_two_strips() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::simd::has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Computes a strip, or two, with the best instructions of this processor.
///
/// # Safety
/// All elements of the formula above must be inside their allocations, and those of `c` must not
/// overlap `a` and `b`.
pub(super) unsafe fn multiply_strip(strip: Strip) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: by this function's contract, and AVX-512 is available.
        return unsafe { avx512::multiply_strip(strip) };
    }
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // SAFETY: by this function's contract, and AVX2 and FMA are available.
        return unsafe { avx2::multiply_strip(strip) };
    }
    for index in 0..strip.strips {
        // SAFETY: by this function's contract.
        unsafe { portable_strip(strip.only(index)) };
    }
}

/// Rows of the block after `done` of `rows` rows, at most `most`. The last two blocks are of equal
/// size: two blocks of 4 are faster than one of 6 and one of 2.
#[inline(always)]
fn next_block(done: usize, rows: usize, most: usize) -> Option<usize> {
    match rows - done {
        0 => None,
        left if left <= most => Some(left),
        left if left < 2 * most => Some(left.div_ceil(2)),
        _ => Some(most),
    }
}

/// # Safety
/// As for [`multiply_strip`], of one strip.
unsafe fn portable_strip(strip: Strip) {
    let mut row = 0;
    while let Some(rows) = next_block(row, strip.to.len(), ROWS) {
        let strip = strip.slice(row, row + rows);
        row += rows;
        // SAFETY: by this function's contract.
        unsafe {
            match rows {
                1 => portable::<1>(strip),
                2 => portable::<2>(strip),
                3 => portable::<3>(strip),
                4 => portable::<4>(strip),
                5 => portable::<5>(strip),
                _ => portable::<6>(strip),
            }
        }
    }
}

/// # Safety
/// As for [`multiply_strip`], with `R` rows of one strip.
unsafe fn portable<const R: usize>(block: Strip) {
    const FUSED: bool = cfg!(target_arch = "aarch64");
    let Strip { a, a_row, rows, columns, transposed, .. } = block;
    let mut sums = [[0.0f32; COLUMNS]; R];
    for step in 0..if transposed { rows.len() } else { columns } {
        let d = if transposed { rows.get(step) } else { step };
        // SAFETY: by this function's contract.
        let right = unsafe { &*block.b.add(d * block.b_row).cast::<[f32; COLUMNS]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            let place = if transposed { d * a_row + r } else { rows.get(r) * a_row + d };
            // SAFETY: by this function's contract.
            let left = unsafe { *a.add(place) };
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = if FUSED { left.mul_add(*right, *sum) } else { *sum + left * right };
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let place = block.to.get(r) * block.c_row;
        // SAFETY: by this function's contract.
        let row = unsafe { &mut *block.c.add(place).cast::<[f32; COLUMNS]>() };
        match block.base {
            Base::Zero => row.copy_from_slice(sums),
            Base::Product => row.iter_mut().zip(sums).for_each(|(c, sum)| *c += sum),
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// The product of two strips by the given version, with all rows of the left operand or some.
    fn product(
        [rows, depth]: [usize; 2],
        transposed: bool,
        listed: bool,
        base: Base,
        version: fn(Strip),
    ) -> Vec<f32> {
        let value = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 300.0;
        let [stored, columns] = if transposed { [depth, rows] } else { [rows, depth] };
        let (a_row, c_row) = (columns + 3, 2 * COLUMNS + 5);
        let a: Vec<f32> = (0..stored * a_row).map(value).collect();
        let b: Vec<f32> = (0..2 * depth * COLUMNS).map(|i| value(i + 31)).collect();
        let mut c: Vec<f32> = (0..rows * c_row).map(|i| value(i + 5)).collect();
        let (a, b, b_strip) = (a.as_ptr(), b.as_ptr(), depth * COLUMNS);
        let some: Vec<u32> = (0..stored as u32).filter(|i| i % 3 != 1).collect();
        let chosen = if listed { Positions::List(&some) } else { Positions::Range(0, stored) };
        let to = if transposed { Positions::Range(0, columns) } else { chosen };
        let (rows, strips, c_place) = (chosen, 2, c.as_mut_ptr());
        let strip = Strip {
            a,
            a_row,
            rows,
            columns,
            transposed,
            b,
            b_row: COLUMNS,
            strips,
            b_strip,
            c: c_place,
            c_row,
            to,
            base,
        };
        version(strip);
        c
    }

    #[test]
    fn all_instruction_sets_agree() {
        if !crate::simd::has_avx2() {
            println!("skipped: AVX2 is not available");
            return;
        }
        if !crate::simd::has_avx512() {
            println!("AVX-512 skipped: it is not available");
        }
        let sizes = [[1, 1], [5, 16], [6, 16], [11, 7], [12, 40], [25, 16], [40, 300]];
        let cases = sizes.into_iter().flat_map(|size| (0..8).map(move |case| (size, case)));
        for (size, case) in cases {
            let base = if case & 1 > 0 { Base::Product } else { Base::Zero };
            let (transposed, listed) = (case & 2 > 0, case & 4 > 0);
            let product = |version: fn(Strip)| product(size, transposed, listed, base, version);
            // Operands are as large as their strips and separate: all of these calls are sound.
            let portable = product(|strip| {
                for strip in [strip.only(0), strip.only(1)] {
                    // SAFETY: see above.
                    unsafe { portable_strip(strip) };
                }
            });
            // SAFETY: see above; AVX2 is available.
            let narrow = product(|strip| unsafe { avx2::multiply_strip(strip) });
            let far = |a: f32, b: f32| (a - b).abs() > 1e-3;
            assert!(!portable.iter().zip(&narrow).any(|(a, b)| far(*a, *b)), "{size:?} {case}");
            if crate::simd::has_avx512() {
                // SAFETY: see above; AVX-512 is available.
                let wide = product(|strip| unsafe { avx512::multiply_strip(strip) });
                assert_eq!(narrow, wide, "{size:?} {case}");
                let one_by_one = product(|strip| {
                    for strip in [strip.only(0), strip.only(1)] {
                        // SAFETY: see above; AVX-512 is available.
                        unsafe { avx512::multiply_strip(strip) }
                    }
                });
                assert_eq!(narrow, one_by_one, "{size:?} {case}");
            }
        }
    }
}
