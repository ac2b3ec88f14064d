//! The similarity convolution against its definition in f64, and its equivariance.

mod definition;

use definition::{KAPPA, Layer, Random, close};
use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

#[test]
fn forward_and_gradients_follow_the_definition() {
    let mut random = Random::new(1);
    // (batch, size, c_in, c_out, k, stride, poses, relative pose, active only)
    for (batch, size, c_in, c_out, k, stride, poses, relative_pose, active_only) in [
        (2, [7, 9], 3, 5, 3, 1, 1, false, false),
        (3, [8, 8], 16, 16, 3, 1, 1, false, false),
        (2, [8, 6], 1, 64, 7, 2, 1, false, false),
        (2, [9, 7], 3, 20, 7, 2, 2, false, true),
        (1, [5, 6], 100, 33, 3, 1, 1, false, false),
        (2, [6, 5], 64, 17, 3, 2, 2, false, true),
        (2, [7, 7], 8, 24, 5, 1, 1, true, false),
        (2, [7, 7], 20, 16, 3, 2, 3, true, true),
        (1, [4, 4], 300, 6, 1, 1, 1, false, false),
        (2, [6, 6], 32, 48, 1, 1, 1, false, false),
        (2, [6, 6], 32, 48, 1, 1, 2, false, true),
        (2, [7, 6], 17, 40, 1, 2, 1, false, false),
        (5, [20, 20], 16, 32, 3, 1, 1, false, false),
        (1, [3, 3], 260, 270, 3, 1, 1, false, false),
        (1, [3, 3], 130, 7, 3, 1, 1, true, false),
        (2, [9, 11], 8, 8, 3, 1, 1, false, true),
        (2, [9, 11], 24, 16, 3, 1, 1, false, false),
        (2, [11, 9], 32, 15, 3, 1, 1, false, true),
        (2, [6, 7], 19, 16, 3, 1, 1, false, false),
        (2, [6, 7], 2, 9, 3, 2, 1, false, false),
        (3, [1, 6], 16, 16, 3, 1, 1, false, false),
        (3, [6, 1], 11, 16, 3, 1, 2, false, false),
        (3, [1, 1], 3, 16, 3, 1, 1, false, false),
        (2, [1, 2], 16, 8, 5, 1, 1, true, false),
        (2, [1, 5], 32, 16, 3, 1, 1, false, false),
        (3, [1, 1], 48, 20, 5, 1, 1, false, false),
        (2, [6, 1], 64, 16, 3, 2, 2, false, true),
        (2, [4, 3], 32, 16, 7, 1, 1, true, true),
    ] {
        let layer = Layer::random(
            &mut random,
            batch,
            size,
            stride,
            k,
            poses,
            SimConv::new(c_in, c_out, relative_pose).unwrap(),
            active_only,
        );
        let label = format!("{batch} {size:?} {c_in} {c_out} k{k} s{stride} J{poses}");
        follows_the_definition(&layer, &label);
    }
}

/// Samples exactly on pixels, inside and outside the image.
#[test]
fn plain_convolutions_follow_the_definition() {
    let mut random = Random::new(8);
    for (size, c_in, relative_pose) in [
        ([9, 7], 16, false),
        ([7, 9], 3, false),
        ([8, 8], 64, false),
        ([1, 5], 20, false),
        ([6, 5], 12, true),
    ] {
        let conv = SimConv::new(c_in, 16, relative_pose).unwrap();
        let mut layer = Layer::random(&mut random, 3, size, 1, 3, 1, conv, false);
        let (grid, count) = (*layer.field.grid(), 3 * size[0] * size[1]);
        let [scale, angle] = [1.0 / KAPPA, 0.0].map(|value| vec![value; count]);
        let ones = vec![1.0; count];
        let plain = PoseField::new(grid, 3, 1, scale, angle, ones.clone(), ones);
        layer.set_field(plain.unwrap());
        follows_the_definition(&layer, &format!("plain {size:?} {c_in}"));
    }
}

#[track_caller]
fn follows_the_definition(layer: &Layer, label: &str) {
    close(&layer.forward(), &layer.exact_forward(), 2e-5, &format!("output {label}"));
    let exact = layer.exact_gradients();
    let got = layer.backward(true);
    close(got.input.as_ref().unwrap(), &exact.input, 3e-5, &format!("input {label}"));
    close(&got.weight, &exact.weight, 3e-5, &format!("weight {label}"));
    close(&got.bias, &exact.bias, 3e-5, &format!("bias {label}"));
    let without = layer.backward(false);
    assert_eq!((without.input, without.weight), (None, got.weight), "{label}");
}

/// Central differences of the kernel. The loss is linear in each argument, so that a step of any size
/// is exact up to rounding.
#[test]
fn gradients_are_those_of_the_forward() {
    let mut random = Random::new(2);
    for (relative_pose, poses, active_only) in [(false, 1, false), (true, 2, true)] {
        let conv = SimConv::new(4, 6, relative_pose).unwrap();
        let mut layer = Layer::random(&mut random, 2, [6, 5], 1, 3, poses, conv, active_only);
        let gradients = layer.backward(true);
        type Part = fn(&mut Layer) -> &mut Vec<f32>;
        let cases: [(&str, Vec<f32>, Part); 3] = [
            ("input", gradients.input.unwrap(), |l| &mut l.input),
            ("weight", gradients.weight, |l| &mut l.weight),
            ("bias", gradients.bias, |l| &mut l.bias),
        ];
        for (name, gradient, part) in cases {
            let mut numeric = Vec::new();
            for index in 0..gradient.len() {
                let value = part(&mut layer)[index];
                let mut at = |offset: f32| {
                    part(&mut layer)[index] = value + offset;
                    let output = layer.forward();
                    let terms = output.iter().zip(&layer.grad_output);
                    terms.map(|(o, g)| *o as f64 * *g as f64).sum::<f64>()
                };
                let slope = (at(0.5) - at(-0.5)) as f32;
                part(&mut layer)[index] = value;
                numeric.push(slope as f64);
            }
            close(&gradient, &numeric, 2e-5, name);
        }
    }
}

#[test]
fn inactive_positions_are_exact_zeros_and_pass_nothing_back() {
    let mut random = Random::new(3);
    let conv = SimConv::new(16, 20, false).unwrap();
    let layer = Layer::random(&mut random, 3, [9, 8], 1, 3, 1, conv, true);
    let active = layer.taps.active().unwrap();
    assert!(!active.is_empty() && active.len() < 3 * 72);
    let output = layer.forward();
    for (position, row) in output.chunks_exact(20).enumerate() {
        let zero = row.iter().all(|&v| v == 0.0);
        assert_eq!(zero, !active.contains(&(position as u32)), "position {position}");
    }
    let mut other = layer.clone();
    for (position, row) in other.grad_output.chunks_exact_mut(20).enumerate() {
        if !active.contains(&(position as u32)) {
            row.fill(1e6);
        }
    }
    assert_eq!(layer.backward(true), other.backward(true));

    // No active position at all.
    let field = PoseField::new(
        Grid::pixels(9, 8),
        3,
        1,
        vec![1.0; 216],
        vec![0.0; 216],
        vec![1.0; 216],
        vec![0.0; 216],
    );
    other.taps = TapTable::new(&field.unwrap(), &Grid::pixels(9, 8), 3, 1.0, true).unwrap();
    assert!(other.forward().iter().all(|&v| v == 0.0));
    let gradients = other.backward(true);
    assert!(gradients.input.unwrap().iter().chain(&gradients.weight).all(|&v| v == 0.0));
}

#[test]
fn two_poses_are_the_mean_of_one_each() {
    let mut random = Random::new(4);
    for relative_pose in [false, true] {
        let conv = SimConv::new(8, 16, relative_pose).unwrap();
        let both = Layer::random(&mut random, 2, [8, 8], 2, 3, 2, conv, false);
        let outputs = [0, 1].map(|pose| {
            let mut one = both.clone();
            one.set_field(both.single_pose(pose));
            one.forward()
        });
        let weights = both.field.weight();
        let mean: Vec<f64> = (0..outputs[0].len())
            .map(|i| {
                let weights = &weights[i / 16 * 2..];
                weights[0] as f64 * outputs[0][i] as f64 + weights[1] as f64 * outputs[1][i] as f64
            })
            .collect();
        close(&both.forward(), &mean, 1e-5, "mean of two poses");
    }
}

#[test]
fn rotating_the_image_by_90_degrees_rotates_the_output() {
    let mut random = Random::new(5);
    for (size, stride, k, poses, relative_pose) in
        [(14, 1, 3, 1, false), (28, 2, 7, 1, false), (16, 2, 3, 2, true), (9, 1, 5, 1, true)]
    {
        let conv = SimConv::new(5, 16, relative_pose).unwrap();
        let layer = Layer::random(&mut random, 2, [size; 2], stride, k, poses, conv, false);
        let rotated = layer.rotated();
        let expected: Vec<f64> =
            rotated.rotate_map(&layer.forward(), 16).iter().map(|&v| v as f64).collect();
        close(&rotated.forward(), &expected, 1e-5, &format!("rotated {size} {stride} {k}"));
    }
}

/// Bit by bit: the weights of a position do not depend on where the position is.
#[test]
fn translation_by_the_step_is_exact() {
    let mut random = Random::new(6);
    let size = 16;
    for (c, stride) in [(16, 1), (16, 2), (64, 1), (128, 2)] {
        let conv = SimConv::new(c, c, false).unwrap();
        let mut layer = Layer::random(&mut random, 1, [size; 2], stride, 3, 1, conv, false);
        let coarse = size / stride;
        // Zero input near the border, so that no sample depends on it.
        let near = |p: usize, size: usize, margin: usize| p < margin || p >= size - margin;
        for (pixel, row) in layer.input.chunks_exact_mut(c).enumerate() {
            if near(pixel % size, size, 4) || near(pixel / size, size, 4) {
                row.fill(0.0);
            }
        }
        let shift = |values: &[f32], size: usize, width: usize, by: usize| {
            let mut out = vec![0.0; values.len()];
            for row in 0..size {
                for column in 0..size {
                    let from = (row * size + column) * width;
                    let to = ((row + by) % size * size + column) * width;
                    out[to..to + width].copy_from_slice(&values[from..from + width]);
                }
            }
            out
        };
        let field = &layer.field;
        let moved = PoseField::new(
            *field.grid(),
            1,
            1,
            shift(field.scale(), coarse, 1, 1),
            shift(field.angle(), coarse, 1, 1),
            field.weight().to_vec(),
            field.confidence().to_vec(),
        );
        let expected = shift(&layer.forward(), coarse, c, 1);
        layer.set_field(moved.unwrap());
        layer.input = shift(&layer.input, size, c, stride);
        assert_eq!(layer.forward(), expected, "{c} channels, stride {stride}");
    }
}

#[test]
fn a_thread_count_gives_one_result() {
    let mut random = Random::new(7);
    let conv = SimConv::new(24, 32, false).unwrap();
    let layer = Layer::random(&mut random, 7, [12, 12], 1, 3, 1, conv, true);
    let forward = layer.forward();
    for threads in [1, 2, 3, 8, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let runs: Vec<_> =
            (0..3).map(|_| pool.install(|| (layer.forward(), layer.backward(true)))).collect();
        assert!(runs.iter().all(|run| *run == runs[0]), "{threads} threads");
        assert_eq!(runs[0].0, forward, "{threads} threads");
        let exact = layer.exact_gradients();
        close(&runs[0].1.weight, &exact.weight, 2e-5, "weight");
        close(runs[0].1.input.as_ref().unwrap(), &exact.input, 2e-5, "input");
    }
}

#[test]
fn tap_tables_are_compact() {
    let grid = Grid::pixels(56, 56);
    let field = PoseField::identity(grid.cell_centred(2).unwrap(), 32).unwrap();
    let taps = TapTable::new(&field, &grid, 7, 0.6, false).unwrap();
    assert!(taps.bytes() < 1 << 20, "{} bytes", taps.bytes());
}

/// The environment variable selects the portable loops, as the test below relies on.
#[test]
fn the_environment_selects_the_instruction_set() {
    let portable = std::env::var_os("SREN_PORTABLE").is_some();
    let set = sren_kernels::instruction_set();
    println!("instruction set: {set}");
    assert!(!portable || set == "portable", "{set}");
}

/// Runs tests of this file again in a child process, with the portable loops.
#[test]
fn portable_loops_follow_the_definition_too() {
    let tests = [
        "forward_and_gradients_follow_the_definition",
        "plain_convolutions_follow_the_definition",
        "the_environment_selects_the_instruction_set",
    ];
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("--exact")
        .args(tests)
        .env("SREN_PORTABLE", "1")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    // A renamed test would be filtered out, and nothing would run.
    assert!(report.contains(&format!("{} passed; 0 failed; 0 ignored", tests.len())), "{report}");
}
