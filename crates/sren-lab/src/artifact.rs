//! Atomic writes of result files.

use std::io::Write;
use std::path::Path;

use crate::error::{LabError, Result};

/// Writes `bytes` to a temporary file and renames it to `path`. A reader of `path`, even after a
/// crash or on a full disk, finds the old content or the new, never a part of it. Devices and pipes
/// are written to directly.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |source| LabError::Write { path: path.to_path_buf(), source };
    if path.metadata().is_ok_and(|known| !known.is_file()) {
        return std::fs::write(path, bytes).map_err(fail);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = std::fs::File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)
    });
    written.map_err(|source| {
        // The write has failed already; a second error adds nothing.
        let _ = std::fs::remove_file(&partial);
        fail(source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_replaces_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("sren-artifact-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.png");
        atomic_write(&path, b"one").unwrap();
        atomic_write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        // A folder cannot be replaced by a file.
        let error = atomic_write(&folder, b"three").unwrap_err().to_string();
        assert!(error.contains("cannot be written"), "{error}");
        let missing = folder.join("no/such/a.png");
        assert!(atomic_write(&missing, b"four").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
