//! Prefetching of the next tile's input while the current tile is computed: a piece before each
//! matrix product, during which the memory is idle.

use std::slice::Chunks;

use super::positions::Positions;
use crate::simd::{LINE, prefetch};
use crate::taps::TapTable;

/// The range of input pixels that has been prefetched.
#[derive(Default)]
pub(super) struct Prefetched {
    /// End of the range, a pixel of the batch.
    end: usize,
}

impl Prefetched {
    /// The pixels of `input` `[pixels, channels]` around `positions` and around as many that follow,
    /// except those returned by earlier calls.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [f32],
        channels: usize,
        taps: &TapTable,
        positions: Positions,
    ) -> &'a [f32] {
        let (cells, pixels) = (taps.output_grid().len(), taps.input_grid().len());
        let margin = taps.kernel_size() * taps.output_grid().width;
        let (first, last) = (positions.get(0), positions.get(positions.len() - 1));
        let pixel = |position: usize| position * pixels / cells;
        let start = pixel(first.saturating_sub(margin)).max(self.end);
        let end = pixel(last + 1 + margin + positions.len()).min(input.len() / channels);
        self.end = end.max(self.end);
        input.get(start * channels..end * channels).unwrap_or_default()
    }
}

/// Values that are prefetched piece by piece.
pub(super) struct Prefetcher<'a> {
    pieces: [Chunks<'a, f32>; 2],
}

impl<'a> Prefetcher<'a> {
    /// Two ranges of values, each in about this number of pieces.
    pub(super) fn new(values: [&'a [f32]; 2], pieces: usize) -> Self {
        let split = |values: &'a [f32]| {
            values.chunks(values.len().div_ceil(pieces.max(1)).max(1).next_multiple_of(LINE))
        };
        Self { pieces: values.map(split) }
    }

    /// Prefetches the next piece of both.
    pub(super) fn step(&mut self) {
        self.pieces.iter_mut().filter_map(Iterator::next).for_each(prefetch);
    }

    /// Prefetches the remaining pieces.
    pub(super) fn finish(self) {
        self.pieces.into_iter().flatten().for_each(prefetch);
    }
}
