//! Transforms that carry grid positions onto grid positions, so that features can be compared
//! without being interpolated.

use sren_math::{Grid, Similarity};

use crate::error::Result;

/// How far from a grid position still counts as on it, in grid steps.
const ON_GRID: f64 = 1e-6;
/// The golden ratio's fractional part: multiples of it are spread evenly over 0..1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A transform about the image's centre, and positions (index before, index after) of one grid
/// that it carries onto each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placement {
    pub(super) transform: Similarity,
    pub(super) pairs: Vec<[usize; 2]>,
}

/// Where positions are taken from: those of `grid` within `radius` of the centre of `image`, and the
/// nearest ones on a grid so coarse that there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region<'a> {
    pub(super) image: &'a Grid,
    pub(super) grid: &'a Grid,
    pub(super) radius: f64,
}

impl Region<'_> {
    /// The placements of `transform`. If it maps the grid onto itself, one with every position;
    /// otherwise `count`, each for one position, the transform followed by the shift of at most
    /// half a grid step that puts the position on the grid again. Positions that leave the grid
    /// have none, unless all of them leave it: then each is put on the nearest position.
    pub(super) fn placements(
        &self,
        transform: &Similarity,
        count: usize,
        salt: usize,
    ) -> Result<Vec<Placement>> {
        let (full, radius) = (transform.about(self.centre()), self.reach());
        let lands = |at: usize, anywhere: bool| {
            let [x, y] = full.apply(self.grid.point(at / self.grid.width, at % self.grid.width));
            let [u, v] = [x - self.grid.origin[0], y - self.grid.origin[1]];
            let [column, row] = [u, v].map(|d| (d / self.grid.step).round());
            let last = |count: usize| count.saturating_sub(1) as f64;
            let near_column = column.clamp(0.0, last(self.grid.width));
            let near_row = row.clamp(0.0, last(self.grid.height));
            let inside = anywhere || [near_column, near_row] == [column, row];
            let [column, row] = [near_column, near_row];
            let shift = [column * self.grid.step - u, row * self.grid.step - v];
            inside.then(|| (row as usize * self.grid.width + column as usize, shift))
        };
        let landed = |anywhere: bool| -> Vec<([usize; 2], [f64; 2])> {
            (0..self.grid.len())
                .filter(|at| self.distance(*at) <= radius)
                .filter_map(|at| lands(at, anywhere).map(|(to, shift)| ([at, to], shift)))
                .collect()
        };
        let landed = match landed(false) {
            none if none.is_empty() => landed(true),
            some => some,
        };
        let on_grid = |shift: &[f64; 2]| shift.iter().all(|s| s.abs() < ON_GRID * self.grid.step);
        if landed.iter().all(|(_, shift)| on_grid(shift)) {
            let pairs = landed.into_iter().map(|(pair, _)| pair).collect();
            return Ok(vec![Placement { transform: *transform, pairs }]);
        }
        (0..count)
            .map(|draw| {
                let part = ((salt * count + draw) as f64 * GOLDEN).fract();
                let (pair, shift) = landed[(part * landed.len() as f64) as usize];
                let [x, y] = transform.translation();
                let moved = [x + shift[0], y + shift[1]];
                let transform = Similarity::new(transform.scale(), transform.angle(), moved)?;
                Ok(Placement { transform, pairs: vec![pair] })
            })
            .collect()
    }

    fn centre(&self) -> [f64; 2] {
        let middle = |size: usize| 0.5 * self.image.step * (size as f64 - 1.0);
        let [x, y] = self.image.origin;
        [x + middle(self.image.width), y + middle(self.image.height)]
    }

    /// Distance of a position from the centre.
    fn distance(&self, at: usize) -> f64 {
        let [x, y] = self.grid.point(at / self.grid.width, at % self.grid.width);
        let [cx, cy] = self.centre();
        (x - cx).hypot(y - cy)
    }

    /// The radius within which there is at least one position, if the grid has one near the centre.
    fn reach(&self) -> f64 {
        let nearest = (0..self.grid.len()).map(|at| self.distance(at)).fold(f64::MAX, f64::min);
        match nearest <= self.grid.step {
            // Positions as far away as the nearest, but for rounding, count as well.
            true => self.radius.max(nearest * (1.0 + ON_GRID)),
            false => self.radius,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_pairs_every_position_and_other_turns_put_one_on_the_grid() {
        let image = Grid::pixels(16, 16);
        let grid = image.cell_centred(2).unwrap();
        let region = Region { image: &image, grid: &grid, radius: 100.0 };
        let turn = |degrees: f64| Similarity::new(1.0, degrees.to_radians(), [0.0; 2]).unwrap();
        let quarter = region.placements(&turn(90.0), 3, 0).unwrap();
        assert_eq!((quarter.len(), quarter[0].pairs.len()), (1, 64));
        // The first row becomes the last column.
        assert!(quarter[0].pairs.contains(&[0, 7]) && quarter[0].pairs.contains(&[7, 63]));

        // Two by two positions, all farther away than the radius, and driven off the grid by scale 4.
        let coarse = image.cell_centred(8).unwrap();
        let region = Region { image: &image, grid: &coarse, radius: 1.0 };
        assert_eq!(region.placements(&turn(90.0), 3, 0).unwrap()[0].pairs.len(), 4);
        let scale = Similarity::new(4.0, 0.0, [0.0; 2]).unwrap();
        assert_eq!(region.placements(&scale, 3, 0).unwrap().len(), 3);

        let region = Region { image: &image, grid: &grid, radius: 100.0 };
        for Placement { transform, pairs } in region.placements(&turn(30.0), 5, 2).unwrap() {
            assert!(transform.translation().iter().all(|t| t.abs() <= 1.0 + 1e-9));
            let [from, to] = pairs[0];
            let full = transform.about([7.5, 7.5]);
            let [x, y] = full.apply(grid.point(from / 8, from % 8));
            let [u, v] = grid.point(to / 8, to % 8);
            assert!((x - u).abs() < 1e-9 && (y - v).abs() < 1e-9);
        }
    }
}
