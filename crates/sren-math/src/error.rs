//! What can go wrong in this crate: always operation, expected, got.

/// A request that the mathematics cannot fulfil.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{operation}: expected {expected}, got {got}")]
pub struct MathError {
    /// The operation that refused.
    pub operation: &'static str,
    /// What it takes.
    pub expected: String,
    /// What it was given.
    pub got: String,
}

impl MathError {
    /// An error of `operation`, which takes `expected` and was given `got`.
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
