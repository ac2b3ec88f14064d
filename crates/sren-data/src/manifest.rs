//! The files that images were read from, by name, size and checksum: to find out later what changed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{DataError, Result};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRecord {
    /// Its path below the folder of the images, with slashes.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// CRC-32 of its content.
    pub checksum: u32,
}

impl FileRecord {
    /// The file `name`.
    pub fn new(name: &Path, content: &[u8]) -> Self {
        let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
        // One line per file.
        let name = parts.join("/").replace(char::is_control, "?");
        Self { name, bytes: content.len() as u64, checksum: crc32fast::hash(content) }
    }
}

/// All files of a dataset, in order.
///
/// ```
/// use std::path::Path;
/// use sren_data::{FileRecord, Manifest};
///
/// let mut before = Manifest::default();
/// before.push(FileRecord::new(Path::new("cat/1.png"), b"one"));
/// let mut now = Manifest::parse("images.csv", &before.to_string())?;
/// assert_eq!(before.changes(&now), None);
/// now.push(FileRecord::new(Path::new("cat/2.png"), b"two"));
/// let changes = before.changes(&now).unwrap();
/// assert_eq!(changes, "0 changed, 0 missing, 1 new, the first: cat/2.png");
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest(Vec<FileRecord>);

impl Manifest {
    /// Adds a file.
    pub fn push(&mut self, file: FileRecord) {
        self.0.push(file);
    }

    /// The files.
    pub fn files(&self) -> &[FileRecord] {
        &self.0
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what [`to_string`](ToString::to_string) wrote: a line for each file, its checksum,
    /// length and name with commas between them. `source` is used in errors.
    pub fn parse(source: &str, text: &str) -> Result<Self> {
        let record = |line: &str| -> Option<FileRecord> {
            let mut parts = line.splitn(3, ',');
            let checksum = u32::from_str_radix(parts.next()?, 16).ok()?;
            let bytes = parts.next()?.parse().ok()?;
            Some(FileRecord { name: parts.next()?.to_string(), bytes, checksum })
        };
        let lines = text.lines().enumerate().map(|(number, line)| {
            let got = || format!("line {} without them", number + 1);
            let expected = "checksum, length and name in every line";
            record(line).ok_or_else(|| DataError::format(source, expected, got()))
        });
        Ok(Self(lines.collect::<Result<_>>()?))
    }

    /// What is different in `now`; `None` if nothing is.
    pub fn changes(&self, now: &Self) -> Option<String> {
        let by_name = |manifest: &Self| -> BTreeMap<String, FileRecord> {
            manifest.0.iter().map(|file| (file.name.clone(), file.clone())).collect()
        };
        let (old, new) = (by_name(self), by_name(now));
        let missing: Vec<&String> = old.keys().filter(|name| !new.contains_key(*name)).collect();
        let added: Vec<&String> = new.keys().filter(|name| !old.contains_key(*name)).collect();
        let is_changed = |name: &&String| new.get(*name).is_some_and(|file| *file != old[*name]);
        let changed: Vec<&String> = old.keys().filter(is_changed).collect();
        let first = changed.iter().chain(&missing).chain(&added).next()?;
        Some(format!(
            "{} changed, {} missing, {} new, the first: {first}",
            changed.len(),
            missing.len(),
            added.len()
        ))
    }
}

impl std::fmt::Display for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        for FileRecord { name, bytes, checksum } in &self.0 {
            writeln!(f, "{checksum:08x},{bytes},{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[(&str, &[u8])]) -> Manifest {
        Manifest(files.iter().map(|(n, c)| FileRecord::new(Path::new(n), c)).collect())
    }

    #[test]
    fn every_kind_of_change_is_counted() {
        let old = manifest(&[("a/1, x.png", b"one"), ("a/2.png", b"two"), ("b/3.png", b"three")]);
        let again = Manifest::parse("x", &old.to_string()).unwrap();
        assert_eq!(old, again);
        let now = manifest(&[("a/1, x.png", b"One"), ("b/3.png", b"three"), ("b/4.png", b"four")]);
        let changes = old.changes(&now).unwrap();
        assert_eq!(changes, "1 changed, 1 missing, 1 new, the first: a/1, x.png");
        let error = Manifest::parse("images.csv", "00,1").unwrap_err().to_string();
        assert!(error.starts_with("images.csv: expected") && error.contains("line 1"), "{error}");
    }
}
