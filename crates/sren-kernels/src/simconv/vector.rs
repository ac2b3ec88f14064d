//! Vectors of f32 with AVX2 and AVX-512: loops over channels are written once for both.
//!
//! All functions are `inline(always)`, so that they are compiled with the target features of their
//! callers.

#![allow(clippy::undocumented_unsafe_blocks, reason = "all are by the contract of `Vector`")]

use std::arch::x86_64::*;

/// A vector register of f32.
///
/// # Safety
/// Functions may be called if the vector's instructions are available.
pub(super) trait Vector: Copy {
    /// Number of values.
    const WIDTH: usize;

    unsafe fn zero() -> Self;

    /// One value in all lanes.
    unsafe fn splat(value: f32) -> Self;

    /// The first `count` values at `from`, which are readable, and zeros in the other lanes.
    unsafe fn load(from: *const f32, count: usize) -> Self;

    /// Writes the first `count` values to `to`, which is writable.
    unsafe fn store(self, to: *mut f32, count: usize);

    unsafe fn add(self, other: Self) -> Self;

    unsafe fn mul(self, other: Self) -> Self;

    /// `self * factor + sum`, rounded once.
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self;
}

/// Values of half an AVX2 vector.
pub(super) const HALF: usize = 4;

impl Vector for __m256 {
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32, count: usize) -> Self {
        unsafe {
            match count {
                Self::WIDTH => _mm256_loadu_ps(from),
                HALF => _mm256_zextps128_ps256(_mm_loadu_ps(from)),
                _ => _mm256_maskload_ps(from, first(count)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, count: usize) {
        unsafe {
            match count {
                Self::WIDTH => _mm256_storeu_ps(to, self),
                HALF => _mm_storeu_ps(to, _mm256_castps256_ps128(self)),
                _ => _mm256_maskstore_ps(to, first(count), self),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm256_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        unsafe { _mm256_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self {
        unsafe { _mm256_fmadd_ps(self, factor, sum) }
    }
}

/// A mask of the first `count` values.
///
/// # Safety
/// AVX2 is available.
#[inline(always)]
unsafe fn first(count: usize) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places)
    }
}

impl Vector for __m512 {
    const WIDTH: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32, count: usize) -> Self {
        unsafe {
            match count {
                Self::WIDTH => _mm512_loadu_ps(from),
                _ => _mm512_maskz_loadu_ps(((1u32 << count) - 1) as u16, from),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, count: usize) {
        unsafe {
            match count {
                Self::WIDTH => _mm512_storeu_ps(to, self),
                _ => _mm512_mask_storeu_ps(to, ((1u32 << count) - 1) as u16, self),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm512_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        unsafe { _mm512_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self {
        unsafe { _mm512_fmadd_ps(self, factor, sum) }
    }
}
