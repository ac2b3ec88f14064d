//! New arrays, filled by all threads: zeroing a batch of feature maps on one thread would take a
//! tenth of a training step.

use std::mem::MaybeUninit;

use rayon::prelude::*;

/// Values that one thread zeroes at a time.
const BLOCK: usize = 1 << 15;

/// `len` zeros.
pub(crate) fn zeros(len: usize) -> Vec<f32> {
    in_blocks(len, BLOCK, |_, _| {})
}

/// `len` values, made block by block: `write` gets the number of a block and its zeros.
pub(crate) fn in_blocks(
    len: usize,
    block: usize,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    let blocks = values.spare_capacity_mut()[..len].par_chunks_mut(block.max(1));
    blocks.enumerate().for_each(|(index, block)| {
        block.fill(MaybeUninit::new(0.0));
        // SAFETY: every value of the block was just written.
        write(index, unsafe { block.assume_init_mut() });
    });
    // SAFETY: the blocks cover the first `len` values, and all of them were written.
    unsafe { values.set_len(len) };
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_numbered_and_start_at_zero() {
        let values = in_blocks(10, 4, |index, block| {
            assert!(block.iter().all(|value| *value == 0.0));
            block[0] = index as f32 + 1.0;
        });
        assert_eq!(values, [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0]);
        assert!(in_blocks(0, 4, |_, _| {}).is_empty());
        assert_eq!(zeros(BLOCK + 1), vec![0.0; BLOCK + 1]);
    }
}
