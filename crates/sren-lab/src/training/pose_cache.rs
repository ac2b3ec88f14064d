//! The pose fields of images that training sees unchanged in every epoch: read once, then kept,
//! active positions only.

use sren::{Grid, PoseField};

use crate::error::Result;

/// Most bytes that are kept; images beyond it are read again each time.
const BUDGET: usize = 1 << 30;

/// Pose fields by the number of their image. Of positions that have no pose nothing is kept: this
/// is for networks that do not compute there.
#[derive(Debug, Default)]
pub(super) struct PoseCache {
    /// By image, then by grid.
    images: Vec<Option<Vec<Kept>>>,
    bytes: usize,
}

/// The active positions of one image on one grid.
#[derive(Debug, Clone)]
struct Kept {
    positions: Vec<u16>,
    /// Scale, angle, confidence.
    values: Vec<[f32; 3]>,
}

impl PoseCache {
    /// Keeps the fields of `images`, one a grid, where it can.
    pub(super) fn keep(&mut self, images: &[usize], fields: &[PoseField]) {
        let fits =
            |field: &PoseField| field.poses() == 1 && u16::try_from(field.grid().len()).is_ok();
        if !fields.iter().all(fits) {
            return;
        }
        for (slot, &image) in images.iter().enumerate() {
            if self.bytes > BUDGET {
                return;
            }
            let kept: Vec<Kept> = fields.iter().map(|field| Kept::of(field, slot)).collect();
            self.bytes += kept.iter().map(|kept| kept.positions.len() * 14 + 64).sum::<usize>();
            if self.images.len() <= image {
                self.images.resize(image + 1, None);
            }
            self.images[image] = Some(kept);
        }
    }

    /// The fields of `images` on `grids`, if all are kept.
    pub(super) fn fields(
        &self,
        images: &[usize],
        grids: &[Grid],
    ) -> Result<Option<Vec<PoseField>>> {
        let kept = |image: &usize| self.images.get(*image).and_then(Option::as_ref);
        let Some(kept) = images.iter().map(kept).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        for (index, grid) in grids.iter().enumerate() {
            let positions = images.len() * grid.len();
            let (mut scale, mut angle) = (vec![1.0; positions], vec![0.0; positions]);
            let mut confidence = vec![0.0; positions];
            for (slot, kept) in kept.iter().enumerate() {
                let Kept { positions, values } = &kept[index];
                for (position, value) in positions.iter().zip(values) {
                    let at = slot * grid.len() + usize::from(*position);
                    [scale[at], angle[at], confidence[at]] = *value;
                }
            }
            let (batch, weight) = (images.len(), vec![1.0; positions]);
            let field = PoseField::new(*grid, batch, 1, scale, angle, weight, confidence);
            fields.push(field.map_err(sren::Error::from)?);
        }
        Ok(Some(fields))
    }
}

impl Kept {
    fn of(field: &PoseField, slot: usize) -> Self {
        let first = slot * field.grid().len();
        let active = |at: &usize| field.confidence()[first + at] > 0.0;
        let positions: Vec<usize> = (0..field.grid().len()).filter(active).collect();
        let value = |at: &usize| {
            let at = first + at;
            [field.scale()[at], field.angle()[at], field.confidence()[at]]
        };
        Self {
            values: positions.iter().map(value).collect(),
            positions: positions.iter().map(|at| *at as u16).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_where_there_is_a_pose() {
        let grid = Grid::pixels(2, 2);
        let (scale, angle) =
            ((1..=8).map(|v| v as f32).collect(), (0..8).map(|v| v as f32).collect());
        let confidence = vec![0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.0, 0.25];
        let field = PoseField::new(grid, 2, 1, scale, angle, vec![1.0; 8], confidence).unwrap();
        let mut kept = PoseCache::default();
        assert!(kept.fields(&[3], &[grid]).unwrap().is_none());
        kept.keep(&[3, 1], std::slice::from_ref(&field));
        assert!(kept.fields(&[3, 2], &[grid]).unwrap().is_none());
        let back = kept.fields(&[3, 1], &[grid]).unwrap().unwrap();
        assert_eq!(back[0].confidence(), field.confidence());
        for at in (0..8).filter(|at| field.confidence()[*at] > 0.0) {
            assert_eq!(
                (back[0].scale()[at], back[0].angle()[at]),
                (field.scale()[at], field.angle()[at])
            );
        }
    }
}
