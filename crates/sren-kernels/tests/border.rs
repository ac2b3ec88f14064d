//! Outside the image all values are zero: zero padding changes no bit of the result, although samples
//! outside are skipped. Frames are not rotated, and taps are multiples of a quarter pixel apart, so
//! that the rounding of interpolation weights does not depend on the border.

mod definition;

use definition::{Layer, Random};
use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

/// Wider than the reach of any tap.
const MARGIN: usize = 12;
const SIZE: [usize; 2] = [7, 9];

/// `values` `[height, width, each]` in the middle of a larger image filled with `around`.
fn framed(values: &[f32], each: usize, around: f32) -> Vec<f32> {
    let [height, width] = SIZE.map(|side| side + 2 * MARGIN);
    let mut out = vec![around; height * width * each];
    for (row, line) in values.chunks_exact(SIZE[1] * each).enumerate() {
        let at = ((row + MARGIN) * width + MARGIN) * each;
        out[at..at + line.len()].copy_from_slice(line);
    }
    out
}

/// The inverse of [`framed`].
fn unframed(values: &[f32], each: usize) -> Vec<f32> {
    let width = SIZE[1] + 2 * MARGIN;
    let lines = values.chunks_exact(width * each).skip(MARGIN).take(SIZE[0]);
    lines.flat_map(|line| &line[MARGIN * each..(width - MARGIN) * each]).copied().collect()
}

/// Distances of 0.5 to 4 pixels.
fn quarters(random: &mut Random) -> PoseField {
    let count = SIZE[0] * SIZE[1];
    let scale = (0..count).map(|_| 0.25 * (2.0 + 14.0 * random.unit()).round()).collect();
    let (angle, ones) = (vec![0.0; count], vec![1.0; count]);
    let grid = Grid::pixels(SIZE[0], SIZE[1]);
    PoseField::new(grid, 1, 1, scale, angle, ones.clone(), ones).unwrap()
}

fn framed_field(field: &PoseField) -> PoseField {
    let [height, width] = SIZE.map(|side| side + 2 * MARGIN);
    PoseField::new(
        Grid::pixels(height, width),
        1,
        1,
        framed(field.scale(), 1, 1.0),
        framed(field.angle(), 1, 0.0),
        framed(field.weight(), 1, 1.0),
        framed(field.confidence(), 1, 0.0),
    )
    .unwrap()
}

#[test]
fn zeros_around_an_image_change_nothing() {
    let mut random = Random::new(9);
    for (c_in, c_out, k, relative_pose) in [
        (16, 16, 3, false),
        (32, 24, 3, false),
        (48, 16, 5, false),
        (64, 64, 3, false),
        (128, 20, 3, false),
        (256, 16, 3, false),
        (16, 40, 3, true),
    ] {
        let label = format!("{c_in} to {c_out} channels, k {k}, {relative_pose}");
        let conv = SimConv::new(c_in, c_out, relative_pose).unwrap();
        let mut plain = Layer::random(&mut random, 1, SIZE, 1, k, 1, conv, false);
        let (field, input_field) = (quarters(&mut random), quarters(&mut random));
        let table = |field: &PoseField, input_field: &PoseField, active_only: bool| {
            let taps = TapTable::new(field, field.grid(), k, 1.0, active_only).unwrap();
            taps.with_input_poses(input_field).unwrap()
        };
        plain.taps = table(&field, &input_field, false);
        let mut wide = plain.clone();
        wide.taps = table(&framed_field(&field), &framed_field(&input_field), true);
        wide.input = framed(&plain.input, c_in, 0.0);
        wide.grad_output = framed(&plain.grad_output, c_out, 0.0);

        assert_eq!(unframed(&wide.forward(), c_out), plain.forward(), "output, {label}");
        let (wide, plain) = (wide.backward(true), plain.backward(true));
        let input = unframed(&wide.input.unwrap(), c_in);
        assert_eq!(input, plain.input.unwrap(), "gradient of the input, {label}");
        assert_eq!(wide.weight, plain.weight, "gradient of the weight, {label}");
    }
}
