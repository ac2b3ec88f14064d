//! Work without the interpreter: on the pool, and without a panic that reaches Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::failure::{Failure, Result};
use crate::pool::pool;

/// Runs `work` on the pool; other Python threads go on meanwhile.
pub(crate) fn compute<T: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T> {
    let pool = pool(py)?;
    // What a panic may leave half done are caches, whose entries are added whole.
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| pool.install(work))));
    match done {
        Ok(result) => result.map_err(Into::into),
        Err(payload) => Err(Failure::panic(&*payload)),
    }
}
