//! A cache of the pose fields of images that do not change from epoch to epoch: active positions
//! only.

use sren::{Grid, PoseField};

use crate::error::Result;

/// Most bytes of the cache; poses of images beyond it are estimated each time.
const BUDGET: usize = 1 << 30;

/// Pose fields by the number of their image, for networks that compute active positions only.
#[derive(Debug, Default)]
pub(super) struct PoseCache {
    /// By image, then by grid.
    images: Vec<Option<Vec<Entry>>>,
    bytes: usize,
}

/// The active positions of one image on one grid.
#[derive(Debug, Clone)]
struct Entry {
    positions: Vec<u16>,
    /// Scale, angle, confidence.
    values: Vec<[f32; 3]>,
}

impl PoseCache {
    /// Adds the fields of `images`, one per grid, while there is room.
    pub(super) fn insert(&mut self, images: &[usize], fields: &[PoseField]) {
        let fits =
            |field: &PoseField| field.poses() == 1 && u16::try_from(field.grid().len()).is_ok();
        if !fields.iter().all(fits) {
            return;
        }
        for (slot, &image) in images.iter().enumerate() {
            if self.bytes > BUDGET {
                return;
            }
            let entries: Vec<Entry> = fields.iter().map(|field| Entry::of(field, slot)).collect();
            self.bytes +=
                entries.iter().map(|entry| entry.positions.len() * 14 + 64).sum::<usize>();
            if self.images.len() <= image {
                self.images.resize(image + 1, None);
            }
            self.images[image] = Some(entries);
        }
    }

    /// The fields of `images` on `grids`, if all are cached.
    pub(super) fn fields(
        &self,
        images: &[usize],
        grids: &[Grid],
    ) -> Result<Option<Vec<PoseField>>> {
        let entry = |image: &usize| self.images.get(*image).and_then(Option::as_ref);
        let Some(entries) = images.iter().map(entry).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        for (index, grid) in grids.iter().enumerate() {
            let positions = images.len() * grid.len();
            let (mut scale, mut angle) = (vec![1.0; positions], vec![0.0; positions]);
            let mut confidence = vec![0.0; positions];
            for (slot, entry) in entries.iter().enumerate() {
                let Entry { positions, values } = &entry[index];
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

impl Entry {
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
    fn cached_poses_come_back_at_active_positions() {
        let grid = Grid::pixels(2, 2);
        let (scale, angle) =
            ((1..=8).map(|v| v as f32).collect(), (0..8).map(|v| v as f32).collect());
        let confidence = vec![0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.0, 0.25];
        let field = PoseField::new(grid, 2, 1, scale, angle, vec![1.0; 8], confidence).unwrap();
        let mut cache = PoseCache::default();
        assert!(cache.fields(&[3], &[grid]).unwrap().is_none());
        cache.insert(&[3, 1], std::slice::from_ref(&field));
        assert!(cache.fields(&[3, 2], &[grid]).unwrap().is_none());
        let back = cache.fields(&[3, 1], &[grid]).unwrap().unwrap();
        assert_eq!(back[0].confidence(), field.confidence());
        for at in (0..8).filter(|at| field.confidence()[*at] > 0.0) {
            assert_eq!(
                (back[0].scale()[at], back[0].angle()[at]),
                (field.scale()[at], field.angle()[at])
            );
        }
    }
}
