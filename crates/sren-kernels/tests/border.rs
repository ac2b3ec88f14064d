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

#[test]
fn zeros_at_inactive_positions_change_nothing() {
    let mut random = Random::new(10);
    for (c_in, c_out, k, poses, stride) in [
        (32, 24, 3, 1, 1),
        (64, 64, 3, 2, 1),
        (128, 32, 3, 1, 2),
        (512, 16, 3, 1, 1),
        (16, 16, 5, 1, 1),
    ] {
        let label = format!("{c_in} to {c_out} channels, k {k}, {poses} poses, stride {stride}");
        let conv = SimConv::new(c_in, c_out, false).unwrap();
        let mut plain = Layer::random(&mut random, 2, [9, 11], stride, k, poses, conv, true);
        let active: Vec<u32> = (0..2 * 9 * 11).filter(|_| random.unit() < 0.2).collect();
        let is_active = |at: usize| active.contains(&(at as u32));
        for (at, pixel) in plain.input.chunks_exact_mut(c_in).enumerate() {
            if !is_active(at) {
                pixel.fill(0.0);
            }
        }
        let mut sparse = plain.clone();
        sparse.taps = plain.taps.clone().with_active_input(&active).unwrap();

        assert_eq!(sparse.forward(), plain.forward(), "output, {label}");
        let (sparse, plain) = (sparse.backward(true), plain.backward(true));
        assert_eq!(sparse.weight, plain.weight, "gradient of the weight, {label}");
        let (sparse, plain) = (sparse.input.unwrap(), plain.input.unwrap());
        let pixels = sparse.chunks_exact(c_in).zip(plain.chunks_exact(c_in));
        for (at, (sparse, plain)) in pixels.enumerate().filter(|(at, _)| is_active(*at)) {
            assert_eq!(sparse, plain, "gradient of pixel {at}, {label}");
        }
    }
}

#[test]
fn active_positions_of_the_input_are_checked() {
    let grid = Grid::pixels(3, 4);
    let field = PoseField::identity(grid, 2).unwrap();
    let taps = TapTable::new(&field, &grid, 3, 1.0, true).unwrap();
    assert!(taps.clone().with_active_input(&[0, 23]).is_ok());
    let error = taps.with_active_input(&[24]).unwrap_err().to_string();
    assert_eq!(error, "TapTable::with_active_input: expected positions below 24, got 24");
}
