//! Which samples of a tile lie inside the image, and near active positions where these are known.
//! Elsewhere all values are zero, so that products and the scatter may skip such samples without
//! changing a bit of the result.
//!
//! A position *covers* a tap if its sample of the tap lies there in at least one pose.

use std::ops::Range;

use super::positions::Positions;
use super::tile::LANES;

/// Positions per mask.
pub(super) const RUN: usize = u8::BITS as usize;

/// Most taps of a group that can be partitioned by spans.
const SPAN: usize = u8::BITS as usize;

/// Parts with fewer positions are merged into the part of all taps.
const FEW: usize = 4;

/// How taps that are sampled together are partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// One part: nothing is skipped.
    Whole,
    /// Each tap is a part, with the positions that cover it.
    Taps,
    /// Each position is in one part, with the taps from the first to the last that it covers: sums
    /// over them equal those over all taps.
    Spans,
}

/// Some taps, relative to the first sampled one, and the positions that cover them.
pub(super) struct Part<'a> {
    pub(super) taps: Range<usize>,
    pub(super) positions: Positions<'a>,
}

/// The covered taps of the positions of a tile.
pub(super) struct Inside {
    cut: Cut,
    positions: usize,
    /// Per tap, 1 for the positions that cover it, 0 for the others.
    flags: Vec<[u8; LANES]>,
    /// The same as bits, in runs, if each tap is a part.
    masks: Vec<[u8; LANES / RUN]>,
    /// Concatenated lists of positions.
    list: Vec<u32>,
    /// The taps of each part, and the range of its positions in the list.
    parts: Vec<(Range<usize>, Range<usize>)>,
}

impl Default for Inside {
    fn default() -> Self {
        let (flags, masks) = (Vec::new(), Vec::new());
        let (list, parts) = (Vec::new(), Vec::new());
        Self { cut: Cut::Whole, positions: 0, flags, masks, list, parts }
    }
}

impl Inside {
    /// Resets the flags for `taps` taps of `positions` positions.
    pub(super) fn begin(&mut self, taps: usize, positions: usize, cut: Cut) {
        let spans = cut == Cut::Spans && taps <= SPAN;
        self.cut = if cut == Cut::Spans && !spans { Cut::Whole } else { cut };
        self.positions = positions;
        self.flags.clear();
        self.flags.resize(if self.skips_outside() { taps } else { 0 }, [0; LANES]);
        self.parts.clear();
        if !self.skips_outside() {
            self.parts.push((0..taps, 0..positions));
        }
    }

    /// The flags of `tap` to be set, unless nothing is skipped.
    pub(super) fn flags(&mut self, tap: usize) -> Option<&mut [u8; LANES]> {
        self.flags.get_mut(tap)
    }

    /// Partitions the taps by the flags.
    pub(super) fn finish(&mut self) {
        match self.cut {
            Cut::Whole => {}
            Cut::Taps => self.cut_by_taps(),
            Cut::Spans => self.cut_by_spans(),
        }
    }

    /// Whether samples outside are skipped.
    pub(super) fn skips_outside(&self) -> bool {
        self.cut != Cut::Whole
    }

    /// The parts, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().map(|(taps, slot)| {
            let positions = match slot.len() == self.positions {
                true => Positions::Range(0, self.positions),
                false => Positions::List(&self.list[slot.clone()]),
            };
            Part { taps: taps.clone(), positions }
        })
    }

    /// A bit per position of the run that starts at `position`: whether it covers `tap`; all set,
    /// unless each tap is a part.
    #[inline(always)]
    pub(super) fn mask(&self, tap: usize, position: usize) -> u8 {
        match self.cut {
            Cut::Taps => self.masks[tap][position / RUN],
            Cut::Whole | Cut::Spans => u8::MAX,
        }
    }

    fn cut_by_taps(&mut self) {
        let taps = self.flags.len();
        self.masks.resize(taps, [0; LANES / RUN]);
        self.list.resize(taps * LANES, 0);
        for (tap, (flags, masks)) in self.flags.iter().zip(&mut self.masks).enumerate() {
            let start = tap * LANES;
            let mut end = start;
            // Flags after the last position are 0.
            let runs = flags.as_chunks::<RUN>().0;
            for (run, flags) in runs.iter().enumerate().take(self.positions.div_ceil(RUN)) {
                // Gathers the lowest bits of all bytes in the highest byte.
                let flags = u64::from_le_bytes(*flags);
                let mask = (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
                masks[run] = mask;
                let slots = &mut self.list[end..end + RUN];
                let first = (run * RUN) as u32;
                if mask == u8::MAX {
                    (first..).zip(slots).for_each(|(position, slot)| *slot = position);
                } else {
                    let covering = (0..RUN as u32).filter(|i| mask >> i & 1 > 0);
                    covering.zip(slots).for_each(|(i, slot)| *slot = first + i);
                }
                end += mask.count_ones() as usize;
            }
            self.parts.push((tap..tap + 1, start..end));
        }
    }

    /// Sorts positions by their spans.
    fn cut_by_spans(&mut self) {
        let mut covered = [0; LANES];
        for (tap, flags) in self.flags.iter().enumerate() {
            covered.iter_mut().zip(flags).for_each(|(covered, flag)| *covered |= flag << tap);
        }
        let all = u8::MAX >> (SPAN - self.flags.len());
        let (runs, _) = covered[..self.positions.next_multiple_of(RUN)].as_chunks::<RUN>();
        // Number of positions per span. Most runs cover all taps; those after the last cover none.
        let mut counts = [0; 1 << SPAN];
        for run in runs {
            match *run == [all; RUN] {
                true => counts[all as usize] += RUN,
                false => {
                    run.iter().for_each(|covered| counts[SPANS[*covered as usize] as usize] += 1)
                }
            }
        }
        for few in 1..all {
            if (1..FEW).contains(&counts[few as usize]) {
                counts[all as usize] += std::mem::take(&mut counts[few as usize]);
            }
        }
        // The index in the list of the next position of each span.
        let (mut next, mut end) = ([0; 1 << SPAN], 0);
        for span in (1..=all).filter(|span| counts[*span as usize] > 0) {
            let taps = span.trailing_zeros() as usize..SPAN - span.leading_zeros() as usize;
            next[span as usize] = end;
            end += counts[span as usize];
            self.parts.push((taps, next[span as usize]..end));
        }
        self.list.resize(end.max(self.list.len()), 0);
        for (run, first) in runs.iter().zip((0..).step_by(RUN)) {
            if *run == [all; RUN] {
                let slots = &mut self.list[next[all as usize]..][..RUN];
                (first..).zip(slots).for_each(|(position, slot)| *slot = position);
                next[all as usize] += RUN;
                continue;
            }
            for (position, &covered) in (first..).zip(run).filter(|(_, covered)| **covered > 0) {
                let span = SPANS[covered as usize];
                let span = if counts[span as usize] > 0 { span } else { all };
                self.list[next[span as usize]] = position;
                next[span as usize] += 1;
            }
        }
    }
}

/// For eight bits, the bits from the first to the last that is set.
const SPANS: [u8; 1 << SPAN] = {
    let (mut spans, mut bits) = ([0; 1 << SPAN], 1u8);
    while bits > 0 {
        spans[bits as usize] =
            (u8::MAX << bits.trailing_zeros()) & (u8::MAX >> bits.leading_zeros());
        bits = bits.wrapping_add(1);
    }
    spans
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Three taps of 120 positions: the first 100 positions cover the first tap, all but the last 4 the
    /// second, positions 7, 117 and 118 the third.
    fn inside(cut: Cut) -> Inside {
        let mut inside = Inside::default();
        inside.begin(3, 120, cut);
        for (tap, covers) in
            [|i| i < 100, |i| i < 116, |i| [7, 117, 118].contains(&i)].into_iter().enumerate()
        {
            let covers: fn(usize) -> bool = covers;
            if let Some(flags) = inside.flags(tap) {
                flags.iter_mut().enumerate().for_each(|(i, flag)| *flag = u8::from(covers(i)));
            }
        }
        inside.finish();
        inside
    }

    fn parts(inside: &Inside) -> Vec<(Range<usize>, Vec<usize>)> {
        let positions =
            |part: &Part| (0..part.positions.len()).map(|i| part.positions.get(i)).collect();
        inside.parts().map(|part| (part.taps.clone(), positions(&part))).collect()
    }

    #[test]
    fn each_tap_has_the_positions_that_cover_it() {
        let inside = inside(Cut::Taps);
        let expected =
            [(0..1, (0..100).collect()), (1..2, (0..116).collect()), (2..3, vec![7, 117, 118])];
        assert_eq!(parts(&inside), expected);
        assert_eq!([inside.mask(0, 96), inside.mask(1, 96), inside.mask(2, 0)], [0x0f, 0xff, 0x80]);
    }

    #[test]
    fn each_position_is_in_one_span_with_all_taps_that_it_covers() {
        // Two positions are too few for a separate part.
        let expected = [
            (0..2, (0..100).filter(|i| *i != 7).collect::<Vec<_>>()),
            (1..2, (100..116).collect()),
            (0..3, vec![7, 117, 118]),
        ];
        let mut found = parts(&inside(Cut::Spans));
        found.sort_by_key(|(taps, _)| (taps.end, taps.start));
        assert_eq!(found, expected);
        assert_eq!(parts(&inside(Cut::Whole)), [(0..3, (0..120).collect())]);
    }
}
