//! Global pools: `cargo bench -p sren-kernels --bench pool`. The counter shows the bytes of the input
//! per second.

use divan::Bencher;
use divan::counter::BytesCount;
use sren_kernels::pool::GlobalPool;

const BATCH: usize = 32;

/// Positions and channels.
const SHAPES: [(usize, usize); 3] = [(56 * 56, 16), (28 * 28, 64), (7 * 7, 256)];

fn input((positions, channels): (usize, usize)) -> (GlobalPool, Vec<f32>) {
    let values = (0..BATCH * positions * channels).map(|i| (i % 1009) as f32 / 1009.0).collect();
    (GlobalPool::new(BATCH, positions, channels).unwrap(), values)
}

#[divan::bench(args = SHAPES)]
fn max(bencher: Bencher, shape: (usize, usize)) {
    let (pool, x) = input(shape);
    bencher.counter(BytesCount::of_slice(&x)).bench(|| pool.max(&x).unwrap());
}

#[divan::bench(args = SHAPES)]
fn gated_mean(bencher: Bencher, shape: (usize, usize)) {
    let (pool, x) = input(shape);
    let gate = vec![0.5; BATCH * shape.0];
    bencher.counter(BytesCount::of_slice(&x)).bench(|| pool.gated_mean(&x, &gate).unwrap());
}

#[divan::bench(args = SHAPES)]
fn gated_mean_backward(bencher: Bencher, shape: (usize, usize)) {
    let (pool, x) = input(shape);
    let gate = vec![0.5; BATCH * shape.0];
    let grad = vec![1.0; BATCH * shape.1];
    bencher
        .counter(BytesCount::of_slice(&x))
        .bench(|| pool.gated_mean_backward(&gate, &grad).unwrap());
}

fn main() {
    divan::main();
}
