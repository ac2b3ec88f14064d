//! Pools over all positions of an image: the two that keep scale equivariance.

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use sren_kernels::pool::GlobalPool;

use crate::conv::check_input;
use crate::error::Result;
use crate::ops::SimilarityOps;

/// The maximum of each channel, `[n, h, w, c]` -> `[n, c]`.
pub fn global_max(input: Tensor<4>) -> Result<Tensor<2>> {
    check("global_max", &input)?;
    let output = <Dispatch as SimilarityOps>::global_max(input.into_dispatch());
    Ok(Tensor::from_dispatch(output))
}

/// `sum z / (sum gate + 1e-3)` of each channel, `[n, h, w, c]`, `[n, h, w, 1]` -> `[n, c]`. The
/// features are those already multiplied with the gate, and the gate is a constant: no gradient
/// reaches it. Unlike the plain mean, it does not fall as the object shrinks.
pub fn gated_mean(input: Tensor<4>, gate: Tensor<4>) -> Result<Tensor<2>> {
    check("gated_mean", &input)?;
    let [n, h, w, _] = input.dims();
    check_input("gated_mean: gate", &gate, [n, h, w, 1])?;
    let output =
        <Dispatch as SimilarityOps>::gated_mean(input.into_dispatch(), gate.into_dispatch());
    Ok(Tensor::from_dispatch(output))
}

fn check(operation: &'static str, input: &Tensor<4>) -> Result<()> {
    let shape @ [batch, height, width, channels] = input.dims();
    GlobalPool::new(batch, height * width, channels)?;
    check_input(operation, input, shape)
}
