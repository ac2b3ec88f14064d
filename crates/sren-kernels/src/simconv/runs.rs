//! The samples of a tile in processing order: all taps of a few positions, then the next positions.

#![allow(clippy::needless_range_loop, reason = "iterators on vectors are not compiled for AVX2")]

use super::tile::{CORNERS, LANES, Tile};

/// One tap and pose of consecutive positions: whether the samples are exact, and the sample of the
/// first position; those of the others follow it.
pub(super) struct Run<'a, const BLOCKS: usize> {
    pub(super) position: usize,
    pub(super) positions: usize,
    pub(super) tap: usize,
    pub(super) pose: usize,
    pub(super) exact: bool,
    /// A bit per position, if the run has the length of a mask: whether its sample is not skipped.
    pub(super) mask: u8,
    pub(super) sample: Sample<'a, BLOCKS>,
}

/// All samples of a tile in runs of up to `length` positions: poses vary fastest, then taps, then
/// positions.
pub(super) struct Runs<'a, const BLOCKS: usize> {
    tile: &'a Tile,
    length: usize,
    position: usize,
    tap: usize,
    pose: usize,
}

impl<'a, const BLOCKS: usize> Runs<'a, BLOCKS> {
    #[inline(always)]
    pub(super) fn of(tile: &'a Tile, length: usize) -> Self {
        Self { tile, length, position: 0, tap: 0, pose: 0 }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Run<'a, BLOCKS>> {
        let Self { tile, length, position, tap, pose } = *self;
        if position >= tile.positions() || tile.taps() == 0 {
            return None;
        }
        self.pose += 1;
        if self.pose == tile.poses() {
            (self.pose, self.tap) = (0, tap + 1);
        }
        if self.tap == tile.taps() {
            (self.tap, self.position) = (0, position + length);
        }
        let index = tap * tile.poses() + pose;
        Some(Run {
            position,
            positions: length.min(tile.positions() - position),
            tap,
            pose,
            exact: tile.exact()[index],
            mask: tile.mask(tap, position),
            sample: Sample::get(tile, index, position),
        })
    }
}

/// A sample: its first corner, the offsets of all corners, and their weights, [`LANES`] values apart.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a, const BLOCKS: usize> {
    pub(super) pixel: *const u32,
    pub(super) corners: &'a [usize; CORNERS],
    pub(super) weight: [*const f32; BLOCKS],
}

impl<'a, const BLOCKS: usize> Sample<'a, BLOCKS> {
    /// The sample `index`, counted over taps and poses, of a position.
    #[inline(always)]
    fn get(tile: &'a Tile, index: usize, position: usize) -> Self {
        let weights = tile.weights();
        let mut weight = [std::ptr::null(); BLOCKS];
        for block in 0..BLOCKS {
            weight[block] = weights[block][index * CORNERS * LANES + position..].as_ptr();
        }
        let pixel = tile.sampled_pixels()[index * LANES + position..].as_ptr();
        Self { pixel, corners: tile.corners(), weight }
    }

    /// The same sample, `positions` positions later.
    ///
    /// # Safety
    /// The tile has that position.
    #[inline(always)]
    pub(super) unsafe fn add(mut self, positions: usize) -> Self {
        // SAFETY: by this function's contract.
        unsafe {
            self.pixel = self.pixel.add(positions);
            for block in 0..BLOCKS {
                self.weight[block] = self.weight[block].add(positions);
            }
        }
        self
    }
}
