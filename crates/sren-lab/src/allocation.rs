//! Where tensors lie in memory, and what becomes of it when they are freed.
//!
//! A training step allocates and frees the same large tensors over and over. By default the C
//! library of Linux hands them back to the system each time, and fetching them again, page by page,
//! costs a tenth of the time of a layer of few channels. It also lets them begin anywhere on a cache
//! line, so that every second vector is read from two.

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes from which on memory begins on a cache line: where it is a part of little.
const LARGE: usize = 4096;

/// The system's allocator, with large memory on whole cache lines, for a program's
/// `#[global_allocator]`.
#[derive(Debug)]
pub struct LineAllocator;

/// What the system is asked for.
fn on_lines(layout: Layout) -> Layout {
    match layout.size() < LARGE {
        true => layout,
        false => layout.align_to(LINE).unwrap_or(layout),
    }
}

// SAFETY: every call goes to the system's allocator, with a layout that depends on the caller's
// alone, so that memory is given back by the layout it was asked for.
unsafe impl GlobalAlloc for LineAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout has a size, and so has this.
        unsafe { System.alloc(on_lines(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(on_lines(layout)) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` with this layout.
        unsafe { System.dealloc(memory, on_lines(layout)) }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_begins_on_a_line_and_keeps_its_content() {
        for (size, grown) in [(16, 100), (100, 10_000), (10_000, 1 << 20), (1 << 20, 50)] {
            let layout = Layout::from_size_align(size, 4).unwrap();
            // SAFETY: sizes are not 0, memory is used within them and freed by its own layout.
            unsafe {
                let memory = LineAllocator.alloc(layout);
                memory.write_bytes(7, size);
                let moved = LineAllocator.realloc(memory, layout, grown);
                assert!(grown < LARGE || (moved as usize).is_multiple_of(LINE));
                let kept = std::slice::from_raw_parts(moved, size.min(grown));
                assert!(kept.iter().all(|byte| *byte == 7));
                LineAllocator.dealloc(moved, Layout::from_size_align(grown, 4).unwrap());
                let zeros = LineAllocator.alloc_zeroed(layout);
                assert!(std::slice::from_raw_parts(zeros, size).iter().all(|byte| *byte == 0));
                LineAllocator.dealloc(zeros, layout);
            }
        }
    }
}
