//! How freed memory is treated.
//!
//! A training step allocates and frees the same large tensors over and over. By default the C
//! library of Linux hands them back to the system each time, and fetching them again, page by page,
//! costs a tenth of the time of a layer of few channels.

/// Lets the process keep what it frees, up to 2 GB, for its next allocations. Call it once, first
/// thing in a program; where the C library is another, it does nothing.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        const TRIM_THRESHOLD: i32 = -1;
        const MMAP_THRESHOLD: i32 = -3;
        // The largest that the library takes: tensors up to here come from the heap.
        const LARGEST_ON_HEAP: i32 = 32 << 20;
        // SAFETY: the declaration is that of malloc.h; the function takes the allocator's lock,
        // refuses numbers it does not like (then memory is only slower), and touches nothing else.
        unsafe {
            mallopt(MMAP_THRESHOLD, LARGEST_ON_HEAP);
            mallopt(TRIM_THRESHOLD, i32::MAX);
        }
    }
}
