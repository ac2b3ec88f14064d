//! Errors of this crate: operation, expected, got.

/// An argument outside the domain of a kernel.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// An invalid argument.
    #[error("{operation}: expected {expected}, got {got}")]
    #[non_exhaustive]
    Invalid {
        /// The operation that returned the error.
        operation: &'static str,
        /// What it expects.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// An error of the mathematics crate.
    #[error(transparent)]
    Math(#[from] sren_math::MathError),
}

impl KernelError {
    /// An error of `operation`, which expects `expected` and was given `got`.
    pub fn invalid(
        operation: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::Invalid { operation, expected: expected.into(), got: got.into() }
    }
}

/// The result of a checked operation of this crate.
pub type Result<T> = std::result::Result<T, KernelError>;
