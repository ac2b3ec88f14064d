//! Arguments that several commands share, with their bounds.

use clap::Args;

/// How many threads work.
#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(0..=MAX_THREADS))]
    threads: u16,
}

/// As a number for clap.
const MAX_THREADS: i64 = sren_lab::threads::MAX_THREADS as i64;

impl Threads {
    /// Their number, 0 for one per core.
    pub(crate) fn count(&self) -> usize {
        self.threads.into()
    }
}

/// A number of images, at least 1.
pub(crate) fn image_count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or("expected a whole number, at least 1".into())
}
