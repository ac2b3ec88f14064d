//! How time is taken: in turns, and the least of several.

use std::time::Instant;

/// Milliseconds of one call.
pub fn once(subject: &(dyn Fn() + Send + Sync)) -> f64 {
    let start = Instant::now();
    subject();
    start.elapsed().as_secs_f64() * 1e3
}

/// The least time of each subject in milliseconds. They take turns, so that whatever else the
/// machine does hits all alike; the first round warms up and does not count.
pub fn least_in_turns(repetitions: usize, subjects: &[&(dyn Fn() + Send + Sync)]) -> Vec<f64> {
    subjects.iter().for_each(|subject| subject());
    let mut least = vec![f64::INFINITY; subjects.len()];
    for _ in 0..repetitions {
        for (least, subject) in least.iter_mut().zip(subjects) {
            *least = least.min(once(*subject));
        }
    }
    least
}
