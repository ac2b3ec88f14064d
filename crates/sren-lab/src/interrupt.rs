//! Interrupt signals: a flag that long work checks, or the end of the process.
//!
//! The signals are SIGINT, SIGTERM and SIGHUP, on Windows Ctrl-C and the events of a console that
//! closes. A SIGHUP that the parent process ignores (`nohup`) stays ignored.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// What a process that ends by a signal adds to its number.
const SIGNALLED: i32 = 128;

/// Whether the first signal sets the flag instead of ending the process.
static WATCHED: AtomicBool = AtomicBool::new(false);
static FLAG: AtomicBool = AtomicBool::new(false);
/// The first signal that set the flag, 0 for none.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// The flag that the first signal sets, so that work can save its state and stop. A second signal
/// ends the process, with the exit code 128 + its number. The first call installs the handler; where
/// that fails, signals keep their default action.
pub fn interrupt_flag() -> &'static AtomicBool {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if install().is_err() {
            eprintln!("signals are not handled: an interrupt does not save the run");
        }
    });
    WATCHED.store(true, Ordering::Relaxed);
    &FLAG
}

/// From now on the first signal ends the process: there is nothing to save.
pub fn end_on_interrupt() {
    WATCHED.store(false, Ordering::Relaxed);
}

/// The exit code of a process that a signal interrupted: 130 for SIGINT, 143 for SIGTERM, 129 for
/// SIGHUP; `None` if none did.
pub fn interrupt_code() -> Option<u8> {
    let first = FIRST.load(Ordering::Relaxed);
    u8::try_from(SIGNALLED + first).ok().filter(|_| first > 0)
}

/// Whether the flag is set by `signal`; otherwise the process is to end.
fn sets_flag(signal: i32) -> bool {
    let first = WATCHED.load(Ordering::Relaxed) && !FLAG.swap(true, Ordering::Relaxed);
    if first {
        FIRST.store(signal, Ordering::Relaxed);
    }
    first
}

#[cfg(unix)]
fn install() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::low_level;
    let signals = match hangup_is_ignored() {
        true => &[SIGINT, SIGTERM][..],
        false => &[SIGINT, SIGTERM, SIGHUP],
    };
    for &signal in signals {
        let received = move || {
            if !sets_flag(signal) {
                low_level::exit(SIGNALLED + signal);
            }
        };
        // SAFETY: the action reads and writes atomics, and ends the process without clean-up.
        unsafe { low_level::register(signal, received)? };
    }
    Ok(())
}

/// Whether the parent process ignores SIGHUP.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: no function is installed as a handler.
    let previous = unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) };
    let ignored = matches!(previous, Ok(SigHandler::SigIgn));
    if !ignored {
        // SAFETY: as above.
        let _ = unsafe { signal(Signal::SIGHUP, SigHandler::SigDfl) };
    }
    ignored
}

#[cfg(not(unix))]
fn install() -> Result<(), ctrlc::Error> {
    const INTERRUPT: i32 = 2;
    ctrlc::set_handler(|| {
        if !sets_flag(INTERRUPT) {
            std::process::exit(SIGNALLED + INTERRUPT);
        }
    })
}
