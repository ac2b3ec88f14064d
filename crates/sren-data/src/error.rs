//! Errors of data: the file or value by its name, what was expected, what was found.

use std::path::PathBuf;

/// Data that cannot be read or is not as expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file or value whose content is not as expected.
    #[error("{name}: expected {expected}, got {got}")]
    Format {
        /// The file or value.
        name: String,
        /// What was expected.
        expected: String,
        /// What was found.
        got: String,
    },
}

impl DataError {
    /// [`Format`](Self::Format) of the file or value `name`.
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
