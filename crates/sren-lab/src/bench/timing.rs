//! How time is taken: in turns, and the least of several.

use std::time::Instant;

use rayon::ThreadPoolBuilder;
use sren::{Error, Result};

/// Milliseconds of one call.
pub fn once(subject: &(dyn Fn() + Send + Sync)) -> f64 {
    let start = Instant::now();
    subject();
    start.elapsed().as_secs_f64() * 1e3
}

/// The least time of each subject in milliseconds. They take turns, so that whatever else the
/// machine does hits all alike; the first round warms up and does not count.
pub fn least_in_turns<const N: usize>(
    repetitions: usize,
    subjects: [&(dyn Fn() + Send + Sync); N],
) -> [f64; N] {
    subjects.iter().for_each(|subject| subject());
    let mut least = [f64::INFINITY; N];
    for _ in 0..repetitions {
        for (least, subject) in least.iter_mut().zip(&subjects) {
            *least = least.min(once(*subject));
        }
    }
    least
}

/// Runs `work` with `threads` threads: on a pool of its own, which both the kernels and Burn's CPU
/// backend use, as they take the pool that they are called on.
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        Error::shape("with_threads", format!("{threads} threads"), error.to_string())
    })?;
    Ok(pool.install(work))
}
