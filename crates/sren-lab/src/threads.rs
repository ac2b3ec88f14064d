//! How many threads work.

use rayon::{ThreadPool, ThreadPoolBuilder};
use sren::{Error, Result};

/// A pool of `threads` threads, one a core if that is 0. The kernels and Burn's CPU backend both use
/// the pool that they are called on.
pub fn pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        Error::shape("threads::pool", format!("{threads} threads"), error.to_string())
    })
}

/// Runs `work` on a [`pool`] of its own.
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool(threads)?.install(work))
}
