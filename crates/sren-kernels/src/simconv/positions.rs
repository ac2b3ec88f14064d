//! Ascending indices: positions of a batch or rows of a matrix.

use crate::taps::TapTable;

/// A range or an ascending list of indices.
#[derive(Debug, Clone, Copy)]
pub(super) enum Positions<'a> {
    /// `start..end`.
    Range(usize, usize),
    /// A list.
    List(&'a [u32]),
}

impl<'a> Positions<'a> {
    /// The active positions of the batch.
    pub(super) fn of(taps: &'a TapTable) -> Self {
        match taps.active() {
            Some(list) => Self::List(list),
            None => Self::Range(0, taps.batch() * taps.output_grid().len()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(start, end) => end - start,
            Self::List(list) => list.len(),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> usize {
        match self {
            Self::Range(start, _) => start + index,
            Self::List(list) => list[index] as usize,
        }
    }

    /// The first `N`, of at least `N`.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators are not compiled for the target features of the caller"
    )]
    pub(super) fn first<const N: usize>(&self) -> [usize; N] {
        let mut numbers = [0; N];
        match self {
            Self::Range(start, _) => {
                for i in 0..N {
                    numbers[i] = start + i;
                }
            }
            Self::List(list) => {
                let list = &list[..N];
                for i in 0..N {
                    numbers[i] = list[i] as usize;
                }
            }
        }
        numbers
    }

    /// The last, if any.
    pub(super) fn last(&self) -> Option<usize> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// The elements `start..end`.
    #[inline(always)]
    pub(super) fn slice(&self, start: usize, end: usize) -> Self {
        match *self {
            Self::Range(first, _) => Self::Range(first + start, first + end),
            Self::List(list) => Self::List(&list[start..end]),
        }
    }

    /// Number of elements below `position`.
    pub(super) fn count_before(&self, position: usize) -> usize {
        match *self {
            Self::Range(start, end) => position.clamp(start, end) - start,
            Self::List(list) => list.partition_point(|&p| (p as usize) < position),
        }
    }

    /// Whether all are below `bound`.
    pub(super) fn are_below(&self, bound: usize) -> bool {
        match self {
            Self::Range(start, end) => start <= end && *end <= bound,
            Self::List(list) => list.iter().all(|p| (*p as usize) < bound),
        }
    }
}
