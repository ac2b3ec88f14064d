//! What can go wrong in this crate: always operation, expected, got.

/// A request that a module cannot fulfil.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor or setting that does not fit the module.
    #[error("{operation}: expected {expected}, got {got}")]
    Shape {
        /// The operation that failed.
        operation: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// A refusal of the kernels underneath.
    #[error(transparent)]
    Kernel(#[from] sren_kernels::KernelError),
    /// A refusal of the mathematics underneath.
    #[error(transparent)]
    Math(#[from] sren_math::MathError),
}

impl Error {
    /// An error of `operation`, which takes `expected` and was given `got`.
    pub fn shape(
        operation: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::Shape { operation, expected: expected.into(), got: got.into() }
    }
}

/// The result of a checked operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
