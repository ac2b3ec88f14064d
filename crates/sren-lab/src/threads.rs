//! The number of threads that work runs on.

use rayon::{ThreadPool, ThreadPoolBuilder};
use sren::{Error, Result};

/// Most threads of a pool.
pub const MAX_THREADS: usize = 1024;

/// A pool of `threads` threads, one per core if that is 0. The kernels and Burn's CPU backend both
/// use the pool that they are called on. Returns an error if there are more than [`MAX_THREADS`].
pub fn pool(threads: usize) -> Result<ThreadPool> {
    let fail = |expected: String, got: String| Error::shape("threads::pool", expected, got);
    if threads > MAX_THREADS {
        return Err(fail(format!("at most {MAX_THREADS} threads"), threads.to_string()));
    }
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| fail(format!("{threads} threads"), error.to_string()))
}

/// Runs `work` on a [`pool`] of its own.
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool(threads)?.install(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_of_threads_are_an_error() {
        let error = pool(100_000).unwrap_err().to_string();
        assert!(error.contains("at most 1024 threads") && error.contains("100000"), "{error}");
        assert_eq!(pool(3).unwrap().current_num_threads(), 3);
    }
}
