//! Which samples of a tile lie inside of the image. Outside of it all is zero, so that products and
//! the adjoint of the gather may leave such samples out: nothing changes by it, to the last bit.

use std::ops::Range;

use super::positions::Positions;
use super::tile::LANES;

/// Positions that a mask tells of.
pub(super) const RUN: usize = u8::BITS as usize;

/// What is seen by each part of the taps that were sampled last.
#[derive(Default)]
pub(super) struct Inside {
    taps: usize,
    positions: usize,
    /// Taps of every part but the last, which may have fewer.
    taps_in_part: usize,
    /// Whether samples outside are left out.
    leaves_out: bool,
    parts: Vec<Seen>,
}

/// The positions of a tile that see something of the image by the taps of a part.
#[derive(Clone)]
struct Seen {
    /// 1 for those that do, 0 for the others.
    flags: [u8; LANES],
    /// A bit for each position, in runs.
    masks: [u8; LANES / RUN],
    /// The same as a list, of which the first `count` count.
    list: [u32; LANES],
    count: usize,
}

/// Some taps, counted from the first that was sampled, and the positions that see something by them.
pub(super) struct Part<'a> {
    pub(super) taps: Range<usize>,
    pub(super) positions: Positions<'a>,
}

impl Inside {
    /// Begins anew, with parts of so many taps; without them, all taps are one part and nothing is
    /// left out.
    pub(super) fn begin(&mut self, taps: usize, positions: usize, taps_in_part: Option<usize>) {
        (self.taps, self.positions) = (taps, positions);
        self.taps_in_part = taps_in_part.unwrap_or(taps).max(1);
        self.leaves_out = taps_in_part.is_some();
        let nothing =
            Seen { flags: [0; LANES], masks: [0; LANES / RUN], list: [0; LANES], count: 0 };
        self.parts.resize(taps.div_ceil(self.taps_in_part), nothing);
        self.parts.iter_mut().for_each(|seen| seen.flags.fill(0));
    }

    /// Where to tell which positions see something by `tap`, if that is of interest.
    pub(super) fn flags(&mut self, tap: usize) -> Option<&mut [u8; LANES]> {
        self.leaves_out.then(|| &mut self.parts[tap / self.taps_in_part].flags)
    }

    /// Makes lists of what was told.
    pub(super) fn finish(&mut self) {
        if self.leaves_out {
            self.parts.iter_mut().for_each(|seen| seen.finish(self.positions));
        }
    }

    /// Whether samples outside are left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// The parts, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().enumerate().map(|(part, seen)| {
            let first = part * self.taps_in_part;
            let positions = match self.leaves_out && seen.count < self.positions {
                true => Positions::List(&seen.list[..seen.count]),
                false => Positions::Range(0, self.positions),
            };
            Part { taps: first..(first + self.taps_in_part).min(self.taps), positions }
        })
    }

    /// A bit for each position of the run that begins with `position`: whether it sees something by
    /// the part that `tap` belongs to.
    #[inline(always)]
    pub(super) fn mask(&self, tap: usize, position: usize) -> u8 {
        match self.leaves_out {
            false => u8::MAX,
            true => self.parts[tap / self.taps_in_part].masks[position / RUN],
        }
    }
}

impl Seen {
    fn finish(&mut self, positions: usize) {
        self.count = 0;
        // Flags after the last position are 0.
        let runs = self.flags.as_chunks::<RUN>().0;
        for (run, flags) in runs.iter().enumerate().take(positions.div_ceil(RUN)) {
            let flags = u64::from_le_bytes(*flags);
            // Gathers the lowest bits of all bytes in the highest byte.
            let mask = (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
            self.masks[run] = mask;
            let list = &mut self.list[self.count..][..RUN];
            let first = (run * RUN) as u32;
            if mask == u8::MAX {
                (first..).zip(list).for_each(|(position, place)| *place = position);
            } else {
                let seen = (0..RUN as u32).filter(|i| mask >> i & 1 > 0);
                seen.zip(list).for_each(|(i, place)| *place = first + i);
            }
            self.count += mask.count_ones() as usize;
        }
    }
}
