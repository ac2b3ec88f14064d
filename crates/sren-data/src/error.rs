//! What can go wrong with data: the thing by its name, what was expected, what was found.

use std::path::PathBuf;

/// Data that cannot be read or is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or folder that the system does not give.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file whose content is not what it should be.
    #[error("{name}: expected {expected}, got {got}")]
    Format {
        /// The file.
        name: String,
        /// What it should hold.
        expected: String,
        /// What it holds.
        got: String,
    },
}

impl DataError {
    /// An error of the file `name`, which should hold `expected` and holds `got`.
    pub fn format(
        name: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::Format { name: name.into(), expected: expected.into(), got: got.into() }
    }
}

/// The result of reading data.
pub type Result<T> = std::result::Result<T, DataError>;
