//! New arrays, initialised by all threads: zeroing a batch of feature maps on one thread takes a
//! tenth of a training step.

use std::mem::MaybeUninit;

use rayon::prelude::*;

/// Values that one thread zeroes at a time.
const BLOCK: usize = 1 << 15;

/// Whether the pool has one thread only. Then the calling thread does the work itself instead of
/// waking another one, possibly on a core with cold caches.
fn is_single_threaded() -> bool {
    rayon::current_num_threads() == 1
}

/// `len` zeros.
pub(crate) fn zeros(len: usize) -> Vec<f32> {
    in_blocks(len, BLOCK, |_, _| {})
}

/// `len` values, initialised block by block: `write` gets the index of a block and its zeros.
pub(crate) fn in_blocks(
    len: usize,
    block: usize,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    let (all, block) = (&mut values.spare_capacity_mut()[..len], block.max(1));
    let work = |(index, block): (usize, &mut [MaybeUninit<f32>])| {
        block.fill(MaybeUninit::new(0.0));
        // SAFETY: every value of the block was just written.
        write(index, unsafe { block.assume_init_mut() });
    };
    match is_single_threaded() {
        true => all.chunks_mut(block).enumerate().for_each(work),
        false => all.par_chunks_mut(block).enumerate().for_each(work),
    }
    // SAFETY: the blocks cover the first `len` values, and all of them were written.
    unsafe { values.set_len(len) };
    values
}

/// A part of a new array, zeroed on demand from its start.
pub(crate) struct Part<'a> {
    values: &'a mut [MaybeUninit<f32>],
    filled: usize,
}

impl Part<'_> {
    /// At least the first `len` values: zeros, or what was written to them.
    pub(crate) fn until(&mut self, len: usize) -> &mut [f32] {
        if len > self.filled {
            self.values[self.filled..len].fill(MaybeUninit::new(0.0));
            self.filled = len;
        }
        // SAFETY: these were initialised here or in `all`.
        unsafe { self.values[..self.filled].assume_init_mut() }
    }

    /// All values, initialised with repetitions of `pattern`. It must be the first access.
    pub(crate) fn all(&mut self, pattern: &[f32]) -> &mut [f32] {
        assert!(self.filled == 0 && !pattern.is_empty(), "a pattern for a new part");
        for values in self.values.chunks_mut(pattern.len()) {
            values.write_copy_of_slice(&pattern[..values.len()]);
        }
        self.filled = self.values.len();
        self.until(self.values.len())
    }
}

/// `len` values in parts of the given lengths, distributed over the threads: `write` gets the state of
/// its thread, the index of a part and the part. Values that are not written are zero. Also returns
/// the results of `write` for all parts, in order.
pub(crate) fn in_parts<S, R: Send>(
    len: usize,
    lengths: &[usize],
    init: impl Fn() -> S + Sync + Send,
    write: impl Fn(&mut S, usize, &mut Part) -> R + Sync + Send,
) -> (Vec<f32>, Vec<R>) {
    let mut values = Vec::with_capacity(len);
    let mut rest = &mut values.spare_capacity_mut()[..len];
    let mut split = |length: &usize| {
        let part = rest.split_off_mut(..*length).expect("parts within the array");
        Part { values: part, filled: 0 }
    };
    let parts: Vec<Part> = lengths.iter().map(&mut split).collect();
    let mut last = Part { values: rest, filled: 0 };
    last.until(last.values.len());
    let work = |state: &mut S, (index, mut part): (usize, Part)| {
        let result = write(state, index, &mut part);
        part.until(part.values.len());
        result
    };
    let results = match is_single_threaded() {
        true => {
            let mut state = init();
            parts.into_iter().enumerate().map(|part| work(&mut state, part)).collect()
        }
        false => parts.into_par_iter().enumerate().map_init(init, work).collect(),
    };
    // SAFETY: the parts and the last one cover the first `len` values, and all were filled.
    unsafe { values.set_len(len) };
    (values, results)
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

    #[test]
    fn parts_are_numbered_and_zero_where_nothing_is_written() {
        let write = |_: &mut (), index: usize, part: &mut Part| {
            part.until(1)[0] = index as f32 + 1.0;
            part.until(2)[1] += 5.0;
            index
        };
        let (values, numbers) = in_parts(8, &[3, 2], || (), write);
        assert_eq!(values, [1.0, 5.0, 0.0, 2.0, 5.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers, [0, 1]);
        assert_eq!(in_parts(2, &[], || (), |_, _, _| ()).0, [0.0; 2]);
        let write = |_: &mut (), _: usize, part: &mut Part| part.all(&[1.0, 2.0])[0] += 6.0;
        assert_eq!(in_parts(4, &[3], || (), write).0, [7.0, 2.0, 1.0, 0.0]);
    }
}
