//! Which samples of a tile lie inside of the image. Outside of it all is zero, so that products and
//! the adjoint of the gather may leave such samples out: nothing changes by it, to the last bit.

use std::ops::Range;

use super::positions::Positions;
use super::tile::LANES;

/// Positions that a mask tells of.
pub(super) const RUN: usize = u8::BITS as usize;

/// Most taps of a group whose spans are told apart.
const SPAN: usize = u8::BITS as usize;

/// Fewer positions than these are not worth a product of their own.
const FEW: usize = 4;

/// How the taps that are sampled together are cut into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Not at all: nothing is left out.
    Whole,
    /// Each tap is a part, of the positions that see something by it.
    Taps,
    /// Each position is in one part, with its taps from the first to the last by which it sees
    /// something: sums over them are those over all taps.
    Spans,
}

/// Some taps, counted from the first that was sampled, and the positions that see something by them.
pub(super) struct Part<'a> {
    pub(super) taps: Range<usize>,
    pub(super) positions: Positions<'a>,
}

/// What is seen by the taps that were sampled last.
pub(super) struct Inside {
    cut: Cut,
    positions: usize,
    /// For each tap, 1 for the positions that see something, 0 for the others.
    flags: Vec<[u8; LANES]>,
    /// The same, a bit for each position, in runs; if each tap is a part.
    masks: Vec<[u8; LANES / RUN]>,
    /// Lists of positions, one after the other.
    list: Vec<u32>,
    /// The taps of each part, and its positions' place in the list.
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
    /// Begins anew.
    pub(super) fn begin(&mut self, taps: usize, positions: usize, cut: Cut) {
        let spans = cut == Cut::Spans && taps <= SPAN;
        self.cut = if cut == Cut::Spans && !spans { Cut::Whole } else { cut };
        self.positions = positions;
        self.flags.clear();
        self.flags.resize(if self.leaves_out() { taps } else { 0 }, [0; LANES]);
        self.parts.clear();
        if !self.leaves_out() {
            self.parts.push((0..taps, 0..positions));
        }
    }

    /// Where to tell which positions see something by `tap`, if that is of interest.
    pub(super) fn flags(&mut self, tap: usize) -> Option<&mut [u8; LANES]> {
        self.flags.get_mut(tap)
    }

    /// Makes parts of what was told.
    pub(super) fn finish(&mut self) {
        match self.cut {
            Cut::Whole => {}
            Cut::Taps => self.cut_by_taps(),
            Cut::Spans => self.cut_by_spans(),
        }
    }

    /// Whether samples outside are left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.cut != Cut::Whole
    }

    /// The parts, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().map(|(taps, place)| {
            let positions = match place.len() == self.positions {
                true => Positions::Range(0, self.positions),
                false => Positions::List(&self.list[place.clone()]),
            };
            Part { taps: taps.clone(), positions }
        })
    }

    /// A bit for each position of the run that begins with `position`: whether it sees something by
    /// `tap`, as far as that was asked for.
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
                let places = &mut self.list[end..end + RUN];
                let first = (run * RUN) as u32;
                if mask == u8::MAX {
                    (first..).zip(places).for_each(|(position, place)| *place = position);
                } else {
                    let seen = (0..RUN as u32).filter(|i| mask >> i & 1 > 0);
                    seen.zip(places).for_each(|(i, place)| *place = first + i);
                }
                end += mask.count_ones() as usize;
            }
            self.parts.push((tap..tap + 1, start..end));
        }
    }

    /// Sorts positions by their spans.
    fn cut_by_spans(&mut self) {
        let mut seen = [0; LANES];
        for (tap, flags) in self.flags.iter().enumerate() {
            seen.iter_mut().zip(flags).for_each(|(seen, flag)| *seen |= flag << tap);
        }
        let all = u8::MAX >> (SPAN - self.flags.len());
        let (runs, _) = seen[..self.positions.next_multiple_of(RUN)].as_chunks::<RUN>();
        // Positions of each span. Most runs see everything, and those after the last see nothing.
        let mut counts = [0; 1 << SPAN];
        for run in runs {
            match *run == [all; RUN] {
                true => counts[all as usize] += RUN,
                false => run.iter().for_each(|seen| counts[SPANS[*seen as usize] as usize] += 1),
            }
        }
        for few in 1..all {
            if (1..FEW).contains(&counts[few as usize]) {
                counts[all as usize] += std::mem::take(&mut counts[few as usize]);
            }
        }
        // Where the next of each span goes.
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
                let places = &mut self.list[next[all as usize]..][..RUN];
                (first..).zip(places).for_each(|(position, place)| *place = position);
                next[all as usize] += RUN;
                continue;
            }
            for (position, &seen) in (first..).zip(run).filter(|(_, seen)| **seen > 0) {
                let span = SPANS[seen as usize];
                let span = if counts[span as usize] > 0 { span } else { all };
                self.list[next[span as usize]] = position;
                next[span as usize] += 1;
            }
        }
    }
}

/// For eight bits, all from the first to the last that is set.
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

    /// Three taps: the first sees the first 100 of 120 positions, the second all but the last 4, the
    /// third numbers 7, 117 and 118.
    fn inside(cut: Cut) -> Inside {
        let mut inside = Inside::default();
        inside.begin(3, 120, cut);
        for (tap, sees) in
            [|i| i < 100, |i| i < 116, |i| [7, 117, 118].contains(&i)].into_iter().enumerate()
        {
            let sees: fn(usize) -> bool = sees;
            if let Some(flags) = inside.flags(tap) {
                flags.iter_mut().enumerate().for_each(|(i, flag)| *flag = u8::from(sees(i)));
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
    fn each_tap_has_the_positions_that_see_something() {
        let inside = inside(Cut::Taps);
        let expected =
            [(0..1, (0..100).collect()), (1..2, (0..116).collect()), (2..3, vec![7, 117, 118])];
        assert_eq!(parts(&inside), expected);
        assert_eq!([inside.mask(0, 96), inside.mask(1, 96), inside.mask(2, 0)], [0x0f, 0xff, 0x80]);
    }

    #[test]
    fn each_position_that_sees_something_is_in_one_span_that_holds_all_of_it() {
        // Two positions are too few for a part of their own.
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
