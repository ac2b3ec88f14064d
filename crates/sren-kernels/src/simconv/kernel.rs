//! The innermost loop of every matrix product here: a block of up to 6 rows by 16 columns,
//!
//! ```text
//! c[r][j] (+)= sum_d a[r * a_row + d * a_depth] * b[d * b_depth + j]
//! ```
//! which 12 AVX registers hold while both operands stream by. As either operand may have any
//! strides, one block serves the forward product and both products of the gradients, and panels
//! need no packing.

/// Rows of a full block.
pub(super) const ROWS: usize = 6;

/// Columns of a block: those of a cache line.
pub(super) const COLUMNS: usize = crate::simd::LINE;

/// Where the operands of a block begin and how far their neighbours are.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) depth: usize,
    pub(super) a: *const f32,
    pub(super) a_row: usize,
    pub(super) a_depth: usize,
    pub(super) b: *const f32,
    pub(super) b_depth: usize,
    pub(super) c: *mut f32,
    pub(super) c_row: usize,
    /// Whether to add to what `c` holds instead of overwriting it.
    pub(super) accumulate: bool,
}

/// A block function for a number of rows that it knows at compile time.
pub(super) type BlockFn = unsafe fn(Block);

/// The block functions for 1 to 6 rows, in the best version for this machine.
pub(super) fn block_functions() -> &'static [BlockFn; ROWS] {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        return &[avx2::<1>, avx2::<2>, avx2::<3>, avx2::<4>, avx2::<5>, avx2::<6>];
    }
    &[portable::<1>, portable::<2>, portable::<3>, portable::<4>, portable::<5>, portable::<6>]
}

/// # Safety
/// For every r below `R`, d below `depth`, j below [`COLUMNS`], the places that the formula above
/// names must be inside their slices, and those of `c` overlap neither operand.
unsafe fn portable<const R: usize>(block: Block) {
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
        for (c, sum) in row.iter_mut().zip(sums) {
            *c = if block.accumulate { *c + sum } else { *sum };
        }
    }
}

/// # Safety
/// As for [`portable`], on a machine with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const R: usize>(block: Block) {
    use std::arch::x86_64::*;
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let (mut a, mut b) = (block.a, block.b);
    for _ in 0..block.depth {
        // SAFETY: by this function's contract.
        let columns = unsafe { [_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8))] };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: by this function's contract.
            let value = unsafe { _mm256_broadcast_ss(&*a.add(r * block.a_row)) };
            sums[0] = _mm256_fmadd_ps(value, columns[0], sums[0]);
            sums[1] = _mm256_fmadd_ps(value, columns[1], sums[1]);
        }
        a = a.wrapping_add(block.a_depth);
        b = b.wrapping_add(block.b_depth);
    }
    for (r, sums) in sums.iter().enumerate() {
        for (half, &sum) in sums.iter().enumerate() {
            // SAFETY: by this function's contract.
            unsafe {
                let c = block.c.add(r * block.c_row + 8 * half);
                let value =
                    if block.accumulate { _mm256_add_ps(_mm256_loadu_ps(c), sum) } else { sum };
                _mm256_storeu_ps(c, value);
            }
        }
    }
}
