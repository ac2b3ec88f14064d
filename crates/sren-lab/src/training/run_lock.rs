//! One training at a time in a run folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::{LabError, Result};

/// The file that is locked. It holds the number of the process that trains.
pub(super) const LOCK_FILE: &str = "lock";
/// Most bytes of it that are read.
const MAX_NUMBER: u64 = 20;

/// A lock on a run folder, until it is dropped or its process ends. The file stays.
#[derive(Debug)]
pub(super) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Locks the folder `path`. Returns an error that names the process if another one has it. Where
    /// the file system has no locks, nothing is locked.
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let file = path.join(LOCK_FILE);
        let fail = |source| LabError::Write { path: file.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut opened = options.open(&file).map_err(fail)?;
        if let Err(TryLockError::WouldBlock) = opened.try_lock() {
            let mut number = String::new();
            // Without the number the error is still true.
            let _ = (&opened).take(MAX_NUMBER).read_to_string(&mut number);
            let got = format!("one that process {} is training", number.trim());
            let expected = "a run that no process is training";
            return Err(LabError::invalid(path.display().to_string(), expected, got));
        }
        let number = format!("{}\n", std::process::id());
        let mut write = || {
            opened.set_len(0)?;
            opened.rewind()?;
            opened.write_all(number.as_bytes())
        };
        write().map_err(fail)?;
        Ok(Self { _file: opened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_names_the_process_of_the_first() {
        let path = std::env::temp_dir().join(format!("sren-lock-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let first = RunLock::acquire(&path).unwrap();
        let error = RunLock::acquire(&path).unwrap_err().to_string();
        let process = format!("got one that process {} is training", std::process::id());
        assert!(error.ends_with(&process), "{error}");
        drop(first);
        RunLock::acquire(&path).unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}
