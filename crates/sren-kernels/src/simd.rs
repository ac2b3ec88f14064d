//! What the vector code of this crate shares: which instructions this machine has, and memory that
//! begins on a cache line.

/// Whether to use AVX2 and FMA: if they are there and the environment variable `SREN_PORTABLE` is
/// not set, which asks for the portable loops (to test them).
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let portable = std::env::var_os("SREN_PORTABLE").is_some();
        !portable && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    })
}

/// Whether to use AVX-512 where it pays, under the same condition.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| has_avx2() && is_x86_feature_detected!("avx512f"))
}

/// Whether to use AVX-512 where most of the work is to store. AMD's Zen 4 (family 19h) stores halves,
/// for which AVX2 is faster.
#[cfg(target_arch = "x86_64")]
pub(crate) fn stores_whole_avx512() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        use std::arch::x86_64::__cpuid;
        let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
        let amd = [vendor.ebx, vendor.edx, vendor.ecx]
            == [*b"Auth", *b"enti", *b"cAMD"].map(u32::from_le_bytes);
        // The family, and what is added to it if it is the last that fits.
        let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
        has_avx512() && !(amd && family == 0x19)
    })
}

/// Asks for `values` to be brought into the second-level cache, where the machine can be asked.
/// What is read in no order that the machine can foresee is worth announcing.
pub(crate) fn prefetch(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: part of every x86-64; the address is inside of `values`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Values of a cache line.
pub(crate) const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// A growing buffer of values that begins on a cache line.
#[derive(Default)]
pub(crate) struct LineBuffer(Vec<Line>);

impl LineBuffer {
    /// The first `count` values, after making room for them. Their content is whatever was there.
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

    /// All values so far, rounded up to whole lines.
    pub(crate) fn values(&self) -> &[f32] {
        // SAFETY: as in `take`, shared.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }
}
