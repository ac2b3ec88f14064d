//! Interrupt signals as a flag that long work checks.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a process that a second signal ends: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

static FLAG: AtomicBool = AtomicBool::new(false);

/// The flag that the first signal sets, so that work can save its state and stop. A second signal
/// ends the process with code 130.
///
/// The signals are SIGINT, SIGTERM and SIGHUP, on Windows Ctrl-C and the events of a console that
/// closes. A SIGHUP that the parent process ignores (`nohup`) stays ignored. The first call installs
/// the handler; where that fails, signals keep their default action.
pub fn interrupt_flag() -> &'static AtomicBool {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let ignored = hangup_is_ignored();
        let installed = ctrlc::set_handler(|| {
            if FLAG.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        });
        if installed.is_err() {
            eprintln!("signals are not handled: an interrupt does not save the run");
        }
        if ignored {
            ignore_hangup();
        }
    });
    &FLAG
}

#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    use nix::sys::signal::SigHandler;
    matches!(ignore_hangup(), Some(SigHandler::SigIgn))
}

/// Ignores SIGHUP and returns the previous action.
#[cfg(unix)]
fn ignore_hangup() -> Option<nix::sys::signal::SigHandler> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: no function is installed as a handler.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }.ok()
}

#[cfg(not(unix))]
fn hangup_is_ignored() -> bool {
    false
}

#[cfg(not(unix))]
fn ignore_hangup() {}
