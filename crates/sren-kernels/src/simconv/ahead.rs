//! What the next tile will read is brought into the second-level cache while this one is computed: a
//! piece before each product, which leaves the memory idle.

use std::slice::Chunks;

use super::positions::Positions;
use crate::simd::{LINE, prefetch};
use crate::taps::TapTable;

/// The pixels of the input that tiles read, announced once each.
#[derive(Default)]
pub(super) struct Announced {
    /// Pixel of the batch up to which they were.
    until: usize,
}

impl Announced {
    /// The pixels of `input` `[pixels, channels]` around `positions` and around as many that come
    /// next, as far as they were not given before.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [f32],
        channels: usize,
        taps: &TapTable,
        positions: Positions,
    ) -> &'a [f32] {
        let (cells, pixels) = (taps.output_grid().len(), taps.input_grid().len());
        let below = taps.kernel_size() * taps.output_grid().width;
        let (first, last) = (positions.get(0), positions.get(positions.len() - 1));
        let pixel = |position: usize| position * pixels / cells;
        let start = pixel(first.saturating_sub(below)).max(self.until);
        let end = pixel(last + 1 + below + positions.len()).min(input.len() / channels);
        self.until = end.max(self.until);
        input.get(start * channels..end * channels).unwrap_or_default()
    }
}

/// What is still to be announced.
pub(super) struct Ahead<'a> {
    pieces: [Chunks<'a, f32>; 2],
}

impl<'a> Ahead<'a> {
    /// Two stretches of values, in about so many pieces.
    pub(super) fn new(values: [&'a [f32]; 2], pieces: usize) -> Self {
        let cut = |values: &'a [f32]| {
            values.chunks(values.len().div_ceil(pieces.max(1)).max(1).next_multiple_of(LINE))
        };
        Self { pieces: values.map(cut) }
    }

    /// Announces the next piece of both.
    pub(super) fn step(&mut self) {
        self.pieces.iter_mut().filter_map(Iterator::next).for_each(prefetch);
    }

    /// Announces all that is left.
    pub(super) fn finish(self) {
        self.pieces.into_iter().flatten().for_each(prefetch);
    }
}
