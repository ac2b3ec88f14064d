//! Instruction sets of the processor, prefetching, and buffers aligned to cache lines.

/// The instruction set that the kernels use on this processor: `"avx512"`, `"avx2"` or `"portable"`.
/// The environment variable `SREN_PORTABLE`, read once, selects the portable loops.
///
/// ```
/// assert!(["avx512", "avx2", "portable"].contains(&sren_kernels::instruction_set()));
/// ```
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return "avx512";
    } else if has_avx2() {
        return "avx2";
    }
    "portable"
}

/// Whether AVX2 and FMA are available and `SREN_PORTABLE` is not set.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let portable = std::env::var_os("SREN_PORTABLE").is_some();
        !portable && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    })
}

/// Whether AVX-512 is available, under the same condition.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *AVAILABLE.get_or_init(|| has_avx2() && is_x86_feature_detected!("avx512f"))
}

/// Whether to use AVX-512 in loops that mostly store. AMD's Zen 4 (family 19h) splits 512-bit stores
/// in two, so that AVX2 is faster there. No feature flag says so: it depends on the vendor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_fast_avx512_stores() -> bool {
    static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        has_avx512() && {
            let id = raw_cpuid::CpuId::new();
            let is_amd =
                id.get_vendor_info().is_some_and(|vendor| vendor.as_str() == "AuthenticAMD");
            let family = id.get_feature_info().map(|features| features.family_id());
            !(is_amd && family == Some(0x19))
        }
    })
}

/// Prefetches `values` into the second-level cache, on x86-64.
pub(crate) fn prefetch(values: &[f32]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in values.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has SSE; the address is inside `values`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = values;
}

/// Values per cache line.
pub(crate) const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// A growing buffer of values, aligned to cache lines.
#[derive(Default)]
pub(crate) struct LineBuffer(Vec<Line>);

impl LineBuffer {
    /// The first `count` values, growing the buffer if needed. Their content is unspecified.
    pub(crate) fn take(&mut self, count: usize) -> &mut [f32] {
        let lines = count.div_ceil(LINE);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0.0; LINE]));
        }
        // SAFETY: `Line` is sixteen f32 without padding, at least `lines` of them are initialised
        // and borrowed mutably for as long as the result lives.
        let values =
            unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), lines * LINE) };
        &mut values[..count]
    }

    /// All values, rounded up to whole lines.
    pub(crate) fn values(&self) -> &[f32] {
        // SAFETY: as in `take`, shared.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }
}
