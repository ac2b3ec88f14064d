//! Regular grids of positions on the image, where layers are evaluated.

use crate::error::{MathError, Result};

/// `height x width` positions; position (row, column) lies at image point
/// `(origin[0] + step * column, origin[1] + step * row)`.
///
/// ```
/// use sren_math::Grid;
///
/// # fn main() -> sren_math::Result<()> {
/// let pixels = Grid::pixels(56, 56);
/// let coarse = pixels.cell_centred(4)?;
/// assert_eq!((coarse.height, coarse.width, coarse.step), (14, 14, 4.0));
/// assert_eq!(coarse.point(0, 1), [5.5, 1.5]);
/// // Strides compose.
/// assert_eq!(pixels.cell_centred(2)?.cell_centred(2)?, coarse);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Distance between neighbours in image pixels.
    pub step: f64,
    /// Image point (x, y) of row 0, column 0.
    pub origin: [f64; 2],
}

impl Grid {
    /// The pixels of a `height x width` image.
    pub fn pixels(height: usize, width: usize) -> Self {
        Self { height, width, step: 1.0, origin: [0.0; 2] }
    }

    /// Every `stride`-th cell of this grid, rounded up, placed symmetrically about its centre, so
    /// that 90-degree rotations of a square image map the grid onto itself. Where `stride` divides
    /// the size, centres are at `stride (i + 1/2) - 1/2`.
    pub fn cell_centred(&self, stride: usize) -> Result<Self> {
        let (height, width) = self.strided("Grid::cell_centred", stride)?;
        let step = self.step * stride as f64;
        let shift = |size: usize, coarse: usize| {
            0.5 * (self.step * (size as f64 - 1.0) - step * (coarse as f64 - 1.0))
        };
        Ok(Self {
            height,
            width,
            step,
            origin: [
                self.origin[0] + shift(self.width, width),
                self.origin[1] + shift(self.height, height),
            ],
        })
    }

    /// Every `stride`-th position of this grid from its first: the grid of an ordinary strided
    /// convolution. Rotations of the image do not map it onto itself.
    pub fn corner_aligned(&self, stride: usize) -> Result<Self> {
        let (height, width) = self.strided("Grid::corner_aligned", stride)?;
        Ok(Self { height, width, step: self.step * stride as f64, origin: self.origin })
    }

    /// The image point (x, y) of a position.
    pub fn point(&self, row: usize, column: usize) -> [f64; 2] {
        [self.origin[0] + self.step * column as f64, self.origin[1] + self.step * row as f64]
    }

    /// Number of positions. It saturates at `usize::MAX`, which no slice has as its length.
    pub fn len(&self) -> usize {
        self.height.saturating_mul(self.width)
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn strided(&self, operation: &'static str, stride: usize) -> Result<(usize, usize)> {
        if stride == 0 {
            return Err(MathError::new(operation, "a stride of at least 1", "0"));
        }
        Ok((self.height.div_ceil(stride), self.width.div_ceil(stride)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_centres_follow_the_formula_and_compose() {
        let coarse = Grid::pixels(56, 28).cell_centred(4).unwrap();
        assert_eq!((coarse.height, coarse.width), (14, 7));
        assert_eq!(coarse.point(3, 2), [4.0 * 2.5 - 0.5, 4.0 * 3.5 - 0.5]);
        let twice = Grid::pixels(56, 28).cell_centred(2).unwrap().cell_centred(2).unwrap();
        assert_eq!(coarse, twice);
    }

    #[test]
    fn odd_sizes_stay_symmetric_about_the_centre() {
        let coarse = Grid::pixels(7, 7).cell_centred(2).unwrap();
        let (first, last) = (coarse.point(0, 0), coarse.point(3, 3));
        assert_eq!([first[0] + last[0], first[1] + last[1]], [6.0, 6.0]);
    }

    #[test]
    fn corner_aligned_starts_at_the_first_pixel() {
        let coarse = Grid::pixels(7, 8).corner_aligned(2).unwrap();
        assert_eq!((coarse.height, coarse.width, coarse.origin), (4, 4, [0.0; 2]));
        assert!(Grid::pixels(7, 8).corner_aligned(0).is_err());
    }
}
