//! Ctrl-C as a wish instead of an end.

use std::sync::atomic::{AtomicBool, Ordering};

static WISHED: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C only sets the flag that is given back, for work to end in its own
/// time; the second ends the process. Where the system is not Unix, Ctrl-C stays as it is.
pub fn interrupt_flag() -> &'static AtomicBool {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn signal(number: i32, handler: usize) -> usize;
        }
        const INTERRUPT: i32 = 2;
        const DEFAULT: usize = 0;
        extern "C" fn wish(_: i32) {
            WISHED.store(true, Ordering::Relaxed);
            // SAFETY: the declaration is that of signal.h, the call is allowed in a handler, and
            // the default action takes no function of ours.
            unsafe { signal(INTERRUPT, DEFAULT) };
        }
        let handler: extern "C" fn(i32) = wish;
        // SAFETY: the declaration is that of signal.h; the handler lives as long as the process
        // and does nothing but set an atomic and call `signal`, both allowed in a handler.
        unsafe { signal(INTERRUPT, handler as usize) };
    }
    &WISHED
}
