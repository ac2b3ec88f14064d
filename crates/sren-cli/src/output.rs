//! Standard output: results only.

use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::Serialize;

use crate::Failure;

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
