//! The active rows of a batch, and parallel loops over them.

use rayon::prelude::*;

use crate::buffer::in_blocks;

/// Rows per task of a reduction: fixed, so that sums do not depend on the number of threads.
const BLOCK_ROWS: usize = 1024;

/// The active rows: all, or those of a list.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) total: usize,
    pub(super) active: Option<&'a [u32]>,
}

/// Sums over wide rows, reduced to sums per channel.
pub(super) fn fold(wide: Vec<f64>, channels: usize) -> Vec<f64> {
    let mut sums = vec![0.0; channels];
    for part in wide.chunks_exact(channels) {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sums
}

impl Rows<'_> {
    /// Treats several rows of few channels as one, if all are active, for longer vector loops; returns
    /// the length of such a row.
    pub(super) fn widened(self, channels: usize) -> (usize, Self) {
        const WIDE: usize = 64;
        let fits = |factor: &usize| factor * channels <= WIDE && self.total.is_multiple_of(*factor);
        let factor = match self.active {
            None => [32, 16, 8, 4, 2].into_iter().find(fits).unwrap_or(1),
            Some(_) => 1,
        };
        (channels * factor, Self { total: self.total / factor, ..self })
    }

    pub(super) fn count(&self) -> usize {
        self.active.map_or(self.total, <[u32]>::len)
    }

    pub(super) fn get(&self, index: usize) -> usize {
        self.active.map_or(index, |list| list[index] as usize)
    }

    /// Two sums per channel over all active rows: f32 within a block, f64 over the blocks in order.
    pub(super) fn reduce(
        &self,
        channels: usize,
        add: impl Fn(usize, [&mut [f32]; 2]) + Sync,
    ) -> [Vec<f64>; 2] {
        let blocks: Vec<[Vec<f32>; 2]> = (0..self.count().div_ceil(BLOCK_ROWS))
            .into_par_iter()
            .map(|block| {
                let (mut a, mut b) = (vec![0.0; channels], vec![0.0; channels]);
                let end = self.count().min((block + 1) * BLOCK_ROWS);
                for index in block * BLOCK_ROWS..end {
                    add(self.get(index), [&mut a, &mut b]);
                }
                [a, b]
            })
            .collect();
        let mut sums = [vec![0.0; channels], vec![0.0; channels]];
        for block in &blocks {
            for (sum, part) in sums.iter_mut().zip(block) {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part as f64);
            }
        }
        sums
    }

    /// Writes the active rows; `values` is `[total, channels]`.
    pub(super) fn for_each_mut(
        &self,
        values: &mut [f32],
        channels: usize,
        write: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let blocks = values.par_chunks_mut(BLOCK_ROWS * channels).enumerate();
        blocks.for_each(|(block, values)| self.write_block(block, values, channels, &write));
    }

    /// New values `[total, channels]`: active rows written, the others zero.
    pub(super) fn build(
        &self,
        channels: usize,
        write: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Vec<f32> {
        in_blocks(self.total * channels, BLOCK_ROWS * channels, |block, values| {
            self.write_block(block, values, channels, &write);
        })
    }

    fn write_block(
        &self,
        block: usize,
        values: &mut [f32],
        channels: usize,
        write: &impl Fn(usize, &mut [f32]),
    ) {
        let first = block * BLOCK_ROWS;
        match self.active {
            None => {
                for (index, row) in values.chunks_exact_mut(channels).enumerate() {
                    write(first + index, row);
                }
            }
            Some(list) => {
                let start = list.partition_point(|&row| (row as usize) < first);
                let end = list.partition_point(|&row| (row as usize) < first + BLOCK_ROWS);
                for &row in &list[start..end] {
                    let at = (row as usize - first) * channels;
                    write(row as usize, &mut values[at..][..channels]);
                }
            }
        }
    }
}
