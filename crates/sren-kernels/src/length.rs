//! Checks of lengths and channel numbers where they enter the crate.

use crate::error::{KernelError, Result};

/// Most channels of a layer. With it, tiles and panels are bounded and their sizes cannot wrap.
pub(crate) const MAX_CHANNELS: usize = 1 << 20;

/// Returns an error if `channels` is not in 1..=[`MAX_CHANNELS`].
pub(crate) fn check_channels(operation: &'static str, channels: usize) -> Result<()> {
    if (1..=MAX_CHANNELS).contains(&channels) {
        return Ok(());
    }
    let expected = format!("at least 1 channel, at most {MAX_CHANNELS}");
    Err(KernelError::invalid(operation, expected, channels.to_string()))
}

/// Returns an error if `values` does not have the length `expected`.
pub(crate) fn check_len(
    operation: &'static str,
    name: &str,
    values: &[f32],
    expected: usize,
) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    let expected = format!("{expected} values of {name}");
    Err(KernelError::invalid(operation, expected, values.len().to_string()))
}
