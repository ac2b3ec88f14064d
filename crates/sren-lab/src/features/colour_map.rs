//! Feature maps as colours: three channels of many, and their values between positions.

use sren::{Grid, Similarity};

use crate::canvas::Colour;

/// The middle part of the frame that features are shown of: the image, without its canvas.
const SHOWN: f64 = 0.62;

/// The three channels that vary most, and the greatest value of each.
pub(crate) struct Palette {
    channels: [usize; 3],
    greatest: [f32; 3],
}

impl Palette {
    /// That of `values`, `[h, w, channels]`.
    pub(crate) fn of(values: &[f32], c: usize) -> Self {
        let mut spread: Vec<(f64, usize)> = (0..c)
            .map(|channel| {
                let of = || values.iter().skip(channel).step_by(c).map(|v| f64::from(*v));
                let n = of().count().max(1) as f64;
                let mean = of().sum::<f64>() / n;
                (of().map(|v| (v - mean).powi(2)).sum::<f64>() / n, channel)
            })
            .collect();
        spread.sort_by(|a, b| b.0.total_cmp(&a.0));
        let channels = [0, 1, 2].map(|i| spread[i.min(c - 1)].1);
        let greatest = channels.map(|channel| {
            let of = values.iter().skip(channel).step_by(c);
            of.fold(f32::MIN_POSITIVE, |most, v| most.max(*v))
        });
        Self { channels, greatest }
    }

    /// The colour of one position, not bounded.
    fn colour(&self, values: &[f32]) -> Colour {
        [0, 1, 2].map(|i| values[self.channels[i]] / self.greatest[i])
    }
}

/// Three channels of a feature map of one image, as red, green and blue.
pub(crate) struct ColourMap {
    grid: Grid,
    /// `[h, w]`
    colours: Vec<Colour>,
}

impl ColourMap {
    /// The map `[h, w, channels]` of one image on `grid`.
    pub(crate) fn new(grid: Grid, values: &[f32], channels: usize, palette: &Palette) -> Self {
        let colours = values.chunks_exact(channels.max(1)).map(|values| palette.colour(values));
        Self { grid, colours: colours.collect() }
    }

    /// The colour at a place, both axes 0..1, of the middle of an image that was transformed by
    /// `transform` about its centre: there the colour is the same as before, if features are
    /// equivariant. `size` is the image's width and height.
    pub(crate) fn transformed_back(
        &self,
        transform: &Similarity,
        size: [usize; 2],
        place: [f64; 2],
    ) -> Colour {
        let centre = size.map(|side| 0.5 * (side as f64 - 1.0));
        let point = [0, 1].map(|axis| {
            let part = 0.5 + SHOWN * (place[axis] - 0.5);
            part * size[axis] as f64 - 0.5
        });
        self.colour(transform.about(centre).apply(point))
    }

    /// The colour at an image point, bilinear.
    pub(crate) fn colour(&self, [x, y]: [f64; 2]) -> Colour {
        let grid = &self.grid;
        let [u, v] = [(x - grid.origin[0]) / grid.step, (y - grid.origin[1]) / grid.step];
        let (left, top) = (u.floor(), v.floor());
        let mut sum = [0.0f32; 3];
        for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            let (column, row) = (left + dx, top + dy);
            let inside = column >= 0.0
                && row >= 0.0
                && column < grid.width as f64
                && row < grid.height as f64;
            if inside {
                let weight = (1.0 - (u - column).abs()) * (1.0 - (v - row).abs());
                let colour = self.colours[row as usize * grid.width + column as usize];
                sum.iter_mut().zip(colour).for_each(|(sum, c)| *sum += weight as f32 * c);
            }
        }
        sum.map(|value| value.clamp(0.0, 1.0).powf(0.8))
    }
}
