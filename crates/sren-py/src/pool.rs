//! The threads that work runs on.
//!
//! Threads do not survive a `fork`: a child that used its parent's pool, or rayon's global one, would
//! wait for them for ever. The pool is therefore made again in a process that did not make it.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::ThreadPool;
use sren_lab::threads;

use crate::failure::Result;

/// Threads asked for, 0 for one per core, and the pool with the process that made it.
struct Threads {
    count: usize,
    pool: Option<(u32, Arc<ThreadPool>)>,
}

/// Locked only by who holds the interpreter, so that no other thread has it locked at a fork.
static THREADS: Mutex<Threads> = Mutex::new(Threads { count: 0, pool: None });

/// The pool of this process.
pub(crate) fn pool(_attached: Python<'_>) -> Result<Arc<ThreadPool>> {
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match threads.pool.take() {
        Some((own, pool)) if own == process => {
            threads.pool = Some((own, pool.clone()));
            return Ok(pool);
        }
        // Its threads are not here: to drop it would wait for them.
        Some(parents) => std::mem::forget(parents),
        None => {}
    }
    let pool = Arc::new(threads::pool(threads.count)?);
    threads.pool = Some((process, pool.clone()));
    Ok(pool)
}

/// A pool of its own, with as many threads, for work that lasts: what Python computes meanwhile does
/// not wait for it.
pub(crate) fn own_pool(py: Python<'_>) -> Result<ThreadPool> {
    Ok(threads::pool(pool(py)?.current_num_threads())?)
}

/// Computes on `count` threads from now on, or with 0 on one per core.
#[pyfunction]
pub(crate) fn set_num_threads(py: Python<'_>, count: usize) -> Result<()> {
    let new = Arc::new(threads::pool(count)?);
    // A pool of the parent process is forgotten, not dropped.
    pool(py)?;
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    *threads = Threads { count, pool: Some((std::process::id(), new)) };
    Ok(())
}

/// The number of threads that work runs on.
#[pyfunction]
pub(crate) fn get_num_threads(py: Python<'_>) -> Result<usize> {
    Ok(pool(py)?.current_num_threads())
}
