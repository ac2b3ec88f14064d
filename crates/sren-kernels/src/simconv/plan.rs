//! The blocking of the work: tiles of positions, groups of taps, one panel.

use std::ops::Range;

use super::SimConv;
use super::kernel::{COLUMNS, ROWS};
use super::tile::POSITIONS;
use crate::taps::TapTable;

/// The blocking of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    taps: usize,
    taps_in_group: usize,
    tap_width: usize,
    /// Positions per tile.
    pub(super) positions: usize,
    /// Distance between rows of the panel, in values.
    pub(super) pitch: usize,
    /// Whether taps are wide enough for products to skip samples outside the image.
    pub(super) skips_outside: bool,
}

/// Consecutive taps whose samples share a panel.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) taps: Range<usize>,
    /// First row of the weight of these taps.
    pub(super) first: usize,
    /// Number of rows of the weight, and of columns of the panel.
    pub(super) width: usize,
}

/// Columns of a panel, if taps are narrow enough: the depth of one pass of the product.
const PANEL_WIDTH: usize = 256;

/// Values per tap from which on skipping samples outside the image pays.
const WIDE: usize = 32;

/// Values of a panel: a fraction of the second-level cache.
const PANEL_VALUES: usize = 104 << 10;

impl Plan {
    pub(super) fn new(conv: &SimConv, taps: &TapTable) -> Self {
        let (taps, tap_width) = (taps.kernel_size().pow(2), conv.tap_width());
        let groups = taps.div_ceil((PANEL_WIDTH / tap_width).clamp(1, taps));
        let taps_in_group = taps.div_ceil(groups);
        // An extra line: rows that are a power of two apart would share cache sets.
        let pitch = (taps_in_group * tap_width).next_multiple_of(COLUMNS) + COLUMNS;
        let positions = (PANEL_VALUES / pitch / ROWS * ROWS).clamp(4 * ROWS, POSITIONS);
        let skips_outside = taps > 1 && tap_width >= WIDE && tap_width.is_multiple_of(COLUMNS);
        Self { taps, taps_in_group, tap_width, positions, pitch, skips_outside }
    }

    /// Columns of the panel of `taps`, relative to the first of the group.
    pub(super) fn columns(self, taps: Range<usize>) -> Range<usize> {
        taps.start * self.tap_width..taps.end * self.tap_width
    }

    /// The groups of taps, in order.
    pub(super) fn groups(self) -> impl Iterator<Item = Group> {
        (0..self.taps).step_by(self.taps_in_group).map(move |start| {
            let taps = start..(start + self.taps_in_group).min(self.taps);
            Group { first: start * self.tap_width, width: taps.len() * self.tap_width, taps }
        })
    }
}
