//! Errors of this crate: operation, expected, got.

/// An argument outside the domain of an operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{operation}: expected {expected}, got {got}")]
#[non_exhaustive]
pub struct MathError {
    /// The operation that returned the error.
    pub operation: &'static str,
    /// What it expects.
    pub expected: String,
    /// What it was given.
    pub got: String,
}

impl MathError {
    /// An error of `operation`, which expects `expected` and was given `got`.
    pub fn new(
        operation: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self { operation, expected: expected.into(), got: got.into() }
    }
}

/// The result of a checked operation of this crate.
pub type Result<T> = std::result::Result<T, MathError>;
