//! The positions of a feature map that count.

use std::sync::Arc;

use crate::error::{Error, Result};

/// Which positions count, and how much. The default: all, the same.
/// [`Frames::mask`](crate::Frames::mask) has that of a batch of images.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// The active positions, numbered through `[n, h, w]`, ascending; without a list, all.
    pub active: Option<Arc<[u32]>>,
    /// Factor of each position, `[n, h, w]`, 0 or greater.
    pub gate: Option<Arc<[f32]>>,
}

impl Mask {
    /// Returns an error if the list does not name positions below `positions` in ascending order,
    /// or the gate has another length.
    pub(crate) fn check(&self, operation: &'static str, positions: usize) -> Result<()> {
        if let Some(gate) = &self.gate
            && gate.len() != positions
        {
            let expected = format!("a gate of {positions} positions");
            return Err(Error::shape(operation, expected, gate.len().to_string()));
        }
        let Some(list) = &self.active else { return Ok(()) };
        let ascending = list.windows(2).all(|pair| pair[0] < pair[1]);
        let last = list.last().copied();
        if ascending && last.is_none_or(|last| (last as usize) < positions) {
            return Ok(());
        }
        let expected = format!("active positions ascending and below {positions}");
        Err(Error::shape(operation, expected, format!("{} up to {last:?}", list.len())))
    }
}
