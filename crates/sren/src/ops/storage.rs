//! Between Burn's CPU tensors and the slices of the kernels, without copies where there can be.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn::tensor::TensorData;

/// A tensor of the CPU backend.
pub(super) type CpuTensor = FloatTensor<Flex>;

/// A tensor of the CPU backend on the autodiff graph.
pub(super) type TrackedTensor<C> = FloatTensor<Autodiff<Flex, C>>;

/// A tensor whose values lie behind one another in memory, row-major.
pub(super) struct Contiguous(CpuTensor);

impl Contiguous {
    /// The same tensor; its values are copied only if they lie in another order.
    pub(super) fn of(tensor: &CpuTensor) -> Self {
        match tensor.as_slice::<f32>() {
            Some(_) => Self(tensor.clone()),
            None => Self(tensor.to_contiguous()),
        }
    }

    /// The values. The modules let f32 tensors pass only, so there are always some to give.
    pub(super) fn values(&self) -> &[f32] {
        self.0.as_slice().unwrap_or_default()
    }
}

/// A tensor that takes over `values`.
pub(super) fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> CpuTensor {
    CpuTensor::from_data(TensorData::new(values, shape))
}

/// The sizes of a tensor of `D` axes.
pub(super) fn sizes<const D: usize>(tensor: &CpuTensor) -> [usize; D] {
    tensor.shape().dims()
}
