//! Standard output: results only. Standard error: notes, unless they are not wanted.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::Failure;

static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only errors go to standard error.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only errors go to standard error.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// A note on standard error.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}

/// An error on standard error, in one line.
pub(crate) fn error(text: &dyn std::fmt::Display) {
    let text = text.to_string();
    let words: Vec<&str> = text.lines().map(str::trim).collect();
    eprintln!("error: {}", words.join(" "));
}

/// Prints a text. A closed pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {e}").into()),
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string(value)?)
}

/// Creates a folder for results, if it does not exist.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    let cannot = |e| format!("{}: cannot be created: {e}", path.display());
    Ok(std::fs::create_dir_all(path).map_err(cannot)?)
}
