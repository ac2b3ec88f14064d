//! Batch norm: `cargo bench -p sren-kernels --bench norm`. The counter shows the bytes of the input
//! per second.

use divan::Bencher;
use divan::counter::BytesCount;
use sren_kernels::norm::{Affine, BatchNorm, Mask, Statistics};

/// Rows and channels of feature maps of a batch of 32 images.
const SHAPES: [(usize, usize); 3] = [(32 * 56 * 56, 16), (32 * 28 * 28, 64), (32 * 7 * 7, 256)];

fn input((rows, channels): (usize, usize)) -> Vec<f32> {
    (0..rows * channels).map(|i| (i % 1009) as f32 / 1009.0).collect()
}

#[divan::bench(args = SHAPES)]
fn statistics(bencher: Bencher, shape: (usize, usize)) {
    let (norm, x) = (BatchNorm::new(shape.1, 1e-5, true).unwrap(), input(shape));
    bencher.counter(BytesCount::of_slice(&x)).bench(|| norm.statistics(&x, None).unwrap());
}

/// A batch norm with its arguments.
fn with_arguments(shape: (usize, usize)) -> (BatchNorm, Vec<f32>, Vec<f32>, Statistics) {
    let norm = BatchNorm::new(shape.1, 1e-5, true).unwrap();
    let x = input(shape);
    let statistics = norm.statistics(&x, None).unwrap();
    (norm, x, vec![1.0; shape.1], statistics)
}

#[divan::bench(args = SHAPES)]
fn forward(bencher: Bencher, shape: (usize, usize)) {
    let (norm, x, ones, statistics) = with_arguments(shape);
    let affine = Affine { gamma: &ones, beta: &ones };
    bencher
        .counter(BytesCount::of_slice(&x))
        .bench(|| norm.forward(&x, affine, &statistics, None, Mask::default()).unwrap());
}

#[divan::bench(args = SHAPES)]
fn backward(bencher: Bencher, shape: (usize, usize)) {
    let (norm, x, ones, statistics) = with_arguments(shape);
    let affine = Affine { gamma: &ones, beta: &ones };
    let mask = Mask::default();
    let y = norm.forward(&x, affine, &statistics, None, mask).unwrap();
    bencher
        .counter(BytesCount::of_slice(&x))
        .bench(|| norm.backward(&x, &y, affine, &statistics, &x, false, mask).unwrap());
}

fn main() {
    divan::main();
}
