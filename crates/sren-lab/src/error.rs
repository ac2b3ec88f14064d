//! What can go wrong in an experiment.

use std::path::PathBuf;

/// A measurement or report that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Data that cannot be read.
    #[error(transparent)]
    Data(#[from] sren_data::DataError),
    /// A refusal of the library.
    #[error(transparent)]
    Sren(#[from] sren::Error),
    /// A file that cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something asked for that does not exist or cannot be used.
    #[error("{subject}: expected {expected}, got {got}")]
    Unfit {
        /// What was asked for.
        subject: String,
        /// What would do.
        expected: String,
        /// What is there.
        got: String,
    },
}

impl LabError {
    /// An error of `subject`, where `expected` would do and `got` is there.
    pub fn invalid(
        subject: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::Unfit { subject: subject.into(), expected: expected.into(), got: got.into() }
    }
}

impl From<sren::MathError> for LabError {
    fn from(error: sren::MathError) -> Self {
        Self::Sren(error.into())
    }
}

/// The result of an experiment.
pub type Result<T, E = LabError> = std::result::Result<T, E>;
