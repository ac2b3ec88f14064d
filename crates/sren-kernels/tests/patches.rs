//! Patches times weights are the convolution; plain taps are those of identity frames.

mod definition;

use definition::{Layer, Random};
use sren_kernels::{PoseField, SimConv, TapTable, patches};
use sren_math::Grid;

#[test]
fn a_patch_times_the_weights_is_the_convolution() {
    let mut random = Random::new(5);
    for (batch, size, c, k, stride, poses, active_only) in [
        (2, [9, 7], 1, 5, 2, 1, true),
        (3, [8, 11], 3, 3, 1, 1, false),
        (1, [40, 40], 1, 7, 2, 2, true),
        (2, [1, 1], 2, 3, 1, 1, false),
    ] {
        let conv = SimConv::new(c, 4, false).unwrap();
        let layer = Layer::random(&mut random, batch, size, stride, k, poses, conv, active_only);
        let out = conv.forward(&layer.taps, &layer.input, &layer.weight, None).unwrap();
        let found = patches(&layer.taps, &layer.input, c).unwrap();
        let all: Vec<u32> = (0..(out.len() / 4) as u32).collect();
        let active = layer.taps.active().unwrap_or(&all);
        assert_eq!(found.len(), active.len() * k * k * c);
        for (position, patch) in active.iter().zip(found.chunks_exact(k * k * c)) {
            for (channel, out) in out[4 * *position as usize..][..4].iter().enumerate() {
                let weights = layer.weight.iter().skip(channel).step_by(4);
                let sum: f32 = patch.iter().zip(weights).map(|(p, w)| p * w).sum();
                assert!((sum - out).abs() < 1e-4, "{sum} instead of {out}");
            }
        }
        assert!(patches(&layer.taps, &layer.input[1..], c).is_err());
    }
}

#[test]
fn without_active_positions_there_are_no_patches() {
    let grid = Grid::pixels(4, 4);
    let nowhere = PoseField::identity(grid, 2).unwrap().with_confidence(vec![0.0; 32]).unwrap();
    let taps = TapTable::new(&nowhere, &grid, 3, 1.0, true).unwrap();
    assert!(patches(&taps, &[1.0; 32], 1).unwrap().is_empty());
    assert!(PoseField::identity(grid, 2).unwrap().with_confidence(vec![0.0; 31]).is_err());
    assert!(PoseField::identity(grid, 2).unwrap().with_confidence(vec![f32::NAN; 32]).is_err());
}

#[test]
fn plain_taps_are_those_of_identity_frames() {
    let mut random = Random::new(6);
    let input = Grid::pixels(9, 12);
    for (k, stride) in [(1, 1), (3, 1), (3, 2), (5, 3)] {
        let output = input.cell_centred(stride).unwrap();
        let identity = PoseField::identity(output, 3).unwrap();
        let framed = TapTable::new(&identity, &input, k, 1.0, false).unwrap();
        let plain = TapTable::plain(3, &input, &output, k).unwrap();
        let conv = SimConv::new(2, 5, false).unwrap();
        let (x, w) = (
            random.values(conv.input_len(&plain).unwrap()),
            random.values(conv.weight_len(k).unwrap()),
        );
        let pass = |taps| conv.forward(taps, &x, &w, None).unwrap();
        assert_eq!(pass(&plain), pass(&framed));
        let grad = random.values(conv.output_len(&plain).unwrap());
        let back = |taps| conv.backward(taps, &x, &w, &grad, true).unwrap();
        assert_eq!(back(&plain), back(&framed));
    }
    assert!(TapTable::plain(1, &input, &input, 4).is_err());
    assert!(TapTable::plain(usize::MAX, &input, &input, 3).is_err());
}
