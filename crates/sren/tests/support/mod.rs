//! Reproducible random tensors and comparisons for the tests of this crate.
#![allow(dead_code)] // every test file uses its own part

use burn::tensor::{Device, Tensor, TensorData};
use sren::{Grid, PoseField};

/// A device that records gradients.
pub(crate) fn device() -> Device {
    Device::flex().autodiff()
}

/// `count` values, evenly spread over -1..1, by xorshift64*.
pub(crate) fn random(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A random tensor.
pub(crate) fn tensor<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let values = random(seed, shape.iter().product());
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// A field of random poses with scales in 0.5..2; `share` of the positions have confidence.
pub(crate) fn poses(seed: u64, grid: Grid, batch: usize, share: f32) -> PoseField {
    let n = batch * grid.len();
    let scale = random(seed, n).iter().map(|v| v.exp2()).collect();
    let angle = random(seed + 1, n).iter().map(|v| v * 3.0).collect();
    let sure = |v: f32| if v * 0.5 + 0.5 < share { 1.0 } else { 0.0 };
    let confidence = random(seed + 2, n).into_iter().map(sure).collect();
    PoseField::new(grid, batch, 1, scale, angle, vec![1.0; n], confidence).unwrap()
}

/// The values of a tensor.
pub(crate) fn values<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}

/// Asserts that two tensors differ by at most `tolerance` of the largest value expected.
pub(crate) fn assert_close<const D: usize>(
    what: &str,
    got: &Tensor<D>,
    expected: &Tensor<D>,
    tolerance: f32,
) {
    assert_eq!(got.dims(), expected.dims(), "{what}");
    let (got, expected) = (values(got), values(expected));
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |m, v| m.max(v.abs()));
    let off = got.iter().zip(&expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
    assert!(off <= tolerance * largest, "{what}: off by {off} of {largest}");
}
