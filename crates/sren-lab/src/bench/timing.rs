//! Interleaved timing: the minimum of several rounds.

use std::time::Instant;

/// Milliseconds of one call.
pub fn once(subject: &(dyn Fn() + Send + Sync)) -> f64 {
    let start = Instant::now();
    subject();
    start.elapsed().as_secs_f64() * 1e3
}

/// The minimum time of each subject in milliseconds. Subjects are interleaved, so that other load on
/// the machine affects all alike; the first round is a warm-up and is not measured.
pub fn minimum_interleaved(repetitions: usize, subjects: &[&(dyn Fn() + Send + Sync)]) -> Vec<f64> {
    subjects.iter().for_each(|subject| subject());
    let mut minimum = vec![f64::INFINITY; subjects.len()];
    for _ in 0..repetitions {
        for (minimum, subject) in minimum.iter_mut().zip(subjects) {
            *minimum = minimum.min(once(*subject));
        }
    }
    minimum
}
