//! What can go wrong at the border of this crate: always operation, expected, got.

/// A request that a kernel cannot fulfil.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// An argument outside of what the operation takes.
    #[error("{operation}: expected {expected}, got {got}")]
    Invalid {
        /// The operation that refused.
        operation: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// A refusal of the mathematics underneath.
    #[error(transparent)]
    Math(#[from] sren_math::MathError),
}

impl KernelError {
    /// An error of `operation`, which takes `expected` and was given `got`.
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
