//! Errors of the crates as Python exceptions with the same text: `OSError` where a file cannot be
//! read or written, `ValueError` otherwise.

use std::any::Any;
use std::io::ErrorKind;

use pyo3::exceptions::{
    PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use sren_data::DataError;
use sren_lab::LabError;

/// An exception to raise.
pub(crate) struct Failure(PyErr);

impl Failure {
    /// A `ValueError`.
    pub(crate) fn value(text: impl std::fmt::Display) -> Self {
        Self(PyValueError::new_err(text.to_string()))
    }

    /// An `OSError`, of the class that Python has for it.
    fn system(error: &impl std::fmt::Display, source: &std::io::Error) -> Self {
        let text = error.to_string();
        Self(match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            _ => PyOSError::new_err(text),
        })
    }

    /// A `RuntimeError` for a panic, which is a fault of this package.
    pub(crate) fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self(PyRuntimeError::new_err(format!(
            "sren: internal error: {}",
            text.unwrap_or("unknown")
        )))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Io { source, .. } => Self::system(&error, source),
            error => Self::value(error),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Data(error) => error.into(),
            LabError::Write { ref source, .. } => Self::system(&error, source),
            error => Self::value(error),
        }
    }
}

impl From<sren::Error> for Failure {
    fn from(error: sren::Error) -> Self {
        Self::value(error)
    }
}

impl From<sren_kernels::KernelError> for Failure {
    fn from(error: sren_kernels::KernelError) -> Self {
        Self::value(error)
    }
}

impl From<sren::MathError> for Failure {
    fn from(error: sren::MathError) -> Self {
        Self::value(error)
    }
}

/// What a call from Python gives.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;
