//! Random shapes: correct values, no panic, no NaN; wrong shapes return errors.

mod definition;

use definition::{Layer, Random, close};
use proptest::prelude::*;
use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

/// Mostly few channels, and numbers around vector and tile sizes.
fn channels() -> impl Strategy<Value = usize> {
    prop_oneof![1usize..40, Just(63), Just(64), Just(65), Just(96), Just(257)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn any_shape_follows_the_definition(
        seed in 0u64..1 << 32,
        batch in 0usize..5,
        size in [1usize..12, 1usize..12],
        stride in 1usize..4,
        radius in 0usize..3,
        poses in 1usize..4,
        c_in in channels(),
        c_out in channels(),
        relative_pose: bool,
        active_only: bool,
    ) {
        let mut random = Random::new(seed);
        let conv = SimConv::new(c_in, c_out, relative_pose).unwrap();
        let k = 2 * radius + 1;
        let mut layer =
            Layer::random(&mut random, batch, size, stride, k, poses, conv, active_only);
        // The sums have up to 3 * 25 * 257 terms; this scales them to the order of 1.
        let scale = 1.0 / (conv.weight_len(k).unwrap() / c_out) as f32;
        layer.weight.iter_mut().for_each(|w| *w *= scale.sqrt());
        close(&layer.forward(), &layer.exact_forward(), 2e-5, "output");
        let (got, exact) = (layer.backward(true), layer.exact_gradients());
        close(&got.input.unwrap(), &exact.input, 3e-5, "input");
        close(&got.weight, &exact.weight, 3e-5, "weight");
        close(&got.bias, &exact.bias, 3e-5, "bias");
    }

    /// Scales far below and above the image size, any finite angle, distant grids.
    #[test]
    fn extreme_poses_give_finite_values(
        seed in 0u64..1 << 32,
        size in [1usize..9, 1usize..9],
        exponent in -40f32..38.0,
        angle in -1e9f32..1e9,
        origin in [-1e12f64..1e12, -1e12f64..1e12],
        near: bool,
        kappa in 0.1f32..2.0,
    ) {
        let mut random = Random::new(seed);
        let input = Grid::pixels(size[0], size[1]);
        let grid = Grid { origin: if near { [0.3, -0.2] } else { origin }, ..input };
        let count = grid.len();
        let scale = 10f32.powf(exponent).max(f32::MIN_POSITIVE);
        let field = PoseField::new(
            grid,
            1,
            1,
            vec![scale; count],
            vec![angle; count],
            vec![1.0; count],
            vec![1.0; count],
        );
        let taps = TapTable::new(&field.unwrap(), &input, 3, kappa, false);
        prop_assert_eq!(taps.is_ok(), (kappa * scale).is_finite());
        if let Ok(taps) = taps {
            let conv = SimConv::new(9, 5, false).unwrap();
            let values = random.values(conv.input_len(&taps).unwrap());
            let weight = random.values(conv.weight_len(3).unwrap());
            let grad = random.values(conv.output_len(&taps).unwrap());
            let output = conv.forward(&taps, &values, &weight, None).unwrap();
            let back = conv.backward(&taps, &values, &weight, &grad, true).unwrap();
            let all = output.iter().chain(back.input.as_ref().unwrap()).chain(&back.weight);
            prop_assert!(all.chain(&back.bias).all(|v| v.is_finite()));
        }
    }

    #[test]
    fn wrong_lengths_are_errors(
        input in 0usize..200,
        weight in 0usize..200,
        bias in 0usize..9,
        grad in 0usize..200,
    ) {
        let grid = Grid::pixels(4, 3);
        let taps = TapTable::new(&PoseField::identity(grid, 2).unwrap(), &grid, 3, 1.0, false).unwrap();
        let conv = SimConv::new(3, 5, false).unwrap();
        let (good_input, good_weight) = (input == 72, weight == 135);
        let (input, weight) = (vec![0.0; input], vec![0.0; weight]);
        let forward = conv.forward(&taps, &input, &weight, Some(&vec![0.0; bias]));
        prop_assert_eq!(forward.is_ok(), good_input && good_weight && bias == 5);
        let backward = conv.backward(&taps, &input, &weight, &vec![0.0; grad], true);
        prop_assert_eq!(backward.is_ok(), good_input && good_weight && grad == 120);
    }
}

#[test]
fn errors_name_wrong_lengths() {
    let grid = Grid::pixels(4, 3);
    let taps = TapTable::new(&PoseField::identity(grid, 2).unwrap(), &grid, 3, 1.0, false).unwrap();
    let conv = SimConv::new(3, 5, false).unwrap();
    let (input, weight, grad) = ([0.0; 72], [0.0; 135], [0.0; 120]);
    assert!(conv.forward(&taps, &input, &weight, Some(&[0.0; 5])).is_ok());
    assert!(conv.backward(&taps, &input, &weight, &grad, false).is_ok());
    let message = conv.forward(&taps, &input[1..], &weight, None).unwrap_err().to_string();
    assert_eq!(message, "SimConv::forward: expected 72 values of input, got 71");
    let relative = SimConv::new(3, 5, true).unwrap();
    assert!(relative.forward(&taps, &input, &[0.0; 405], None).is_err());
    assert!(SimConv::new(0, 5, false).is_err());
    assert!(SimConv::new(5, 0, false).is_err());
}

#[test]
fn invalid_tap_tables_are_errors() {
    let grid = Grid::pixels(4, 3);
    let field = PoseField::identity(grid, 2).unwrap();
    for (kernel_size, kappa) in [(0, 1.0), (2, 1.0), (257, 1.0), (3, 0.0), (3, -1.0), (3, f32::NAN)]
    {
        assert!(TapTable::new(&field, &grid, kernel_size, kappa, false).is_err());
    }
    let bad = [
        Grid::pixels(0, 3),
        Grid { step: 0.0, ..grid },
        Grid { step: f64::NAN, ..grid },
        Grid { origin: [f64::INFINITY, 0.0], ..grid },
        Grid::pixels(1 << 25, 1),
        Grid::pixels(1 << 16, 1 << 16),
    ];
    for input in bad {
        assert!(TapTable::new(&field, &input, 3, 1.0, false).is_err(), "{input:?}");
    }
    let taps = TapTable::new(&field, &grid, 3, 1.0, false).unwrap();
    assert!(taps.clone().with_input_poses(&PoseField::identity(grid, 1).unwrap()).is_err());
    let other = PoseField::identity(Grid::pixels(3, 4), 2).unwrap();
    assert!(taps.clone().with_input_poses(&other).is_err());
    assert!(taps.with_input_poses(&field).unwrap().has_input_poses());
}
