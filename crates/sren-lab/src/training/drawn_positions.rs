//! Training on a part of an image's positions.

use sren::PoseField;
use sren_data::draw_positions;

use crate::error::Result;

/// The fields of images number `indices` with `count` positions of each, drawn for `epoch`, and no
/// confidence elsewhere.
pub(crate) fn with_positions(
    fields: Vec<PoseField>,
    count: usize,
    seed: u64,
    epoch: usize,
    indices: &[usize],
) -> Result<Vec<PoseField>> {
    let drawn = fields.into_iter().map(|field| {
        let mut confidence = vec![0.0; field.confidence().len()];
        let area = field.grid().len();
        for (slot, index) in indices.iter().enumerate() {
            let own = &field.confidence()[slot * area..][..area];
            let active = (0..area).filter(|at| own[*at] > 0.0).collect();
            for at in draw_positions(active, count, seed, epoch, *index) {
                confidence[slot * area + at] = own[at];
            }
        }
        field.with_confidence(confidence).map_err(sren::Error::from)
    });
    Ok(drawn.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sren::Grid;

    #[test]
    fn as_many_positions_as_asked_for_keep_their_confidence() {
        let field = || {
            let confidence = (0..50).map(|i| if i % 5 == 0 { 0.0 } else { 0.5 }).collect();
            PoseField::identity(Grid::pixels(5, 5), 2).unwrap().with_confidence(confidence).unwrap()
        };
        let draw = |epoch| with_positions(vec![field()], 7, 1, epoch, &[4, 9]).unwrap().remove(0);
        let (one, two) = (draw(1), draw(2));
        assert_eq!(one, draw(1));
        assert_ne!(one, two);
        for image in one.confidence().chunks_exact(25) {
            assert_eq!(image.iter().filter(|c| **c > 0.0).count(), 7);
        }
        let drawn = one.confidence().iter().zip(field().confidence().to_vec());
        assert!(drawn.into_iter().all(|(drawn, own)| *drawn == 0.0 || *drawn == own));
        // All, where there are no more.
        let all = with_positions(vec![field()], 30, 1, 1, &[4, 9]).unwrap().remove(0);
        assert_eq!(all, field());
    }
}
