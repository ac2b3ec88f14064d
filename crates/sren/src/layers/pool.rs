//! Pools over all positions of an image: the two that are invariant to scale as well.

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use sren_kernels::pool::GlobalPool;

use super::feature_map::{FeatureMap, check_values};
use crate::error::Result;
use crate::ops::SimilarityOps;
use crate::pose::Frames;

/// The maximum of each channel, `[n, h, w, c]` -> `[n, c]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sren::{FeatureMap, pool};
///
/// let features = FeatureMap::from_images(Tensor::ones([2, 4, 4, 3], &Device::flex()));
/// assert_eq!(pool::global_max(&features)?.dims(), [2, 3]);
/// # Ok::<(), sren::Error>(())
/// ```
pub fn global_max(features: &FeatureMap) -> Result<Tensor<2>> {
    check("global_max", &features.values)?;
    let output = <Dispatch as SimilarityOps>::global_max(features.values.clone().into_dispatch());
    Ok(Tensor::from_dispatch(output))
}

/// `sum z / (sum gate + 1e-3)` of each channel, `[n, h, w, c]` -> `[n, c]`. The features are gated
/// already; no gradient reaches the gate. Unlike the plain mean, it does not fall as the object
/// shrinks.
pub fn gated_mean(features: &FeatureMap, frames: &Frames) -> Result<Tensor<2>> {
    let values = features.values.clone();
    check("gated_mean", &values)?;
    let gate = frames.gate(&features.grid, &values.device())?;
    let [n, h, w, _] = values.dims();
    check_values("gated_mean: gate", &gate, [n, h, w, 1])?;
    let output =
        <Dispatch as SimilarityOps>::gated_mean(values.into_dispatch(), gate.into_dispatch());
    Ok(Tensor::from_dispatch(output))
}

fn check(operation: &'static str, values: &Tensor<4>) -> Result<()> {
    let shape @ [batch, height, width, channels] = values.dims();
    GlobalPool::new(batch, height * width, channels)?;
    check_values(operation, values, shape)
}
