//! The kernels as differentiable Burn operators.
//!
//! Each operator has a forward pass on the `Flex` backend and a step on the autodiff graph whose
//! backward pass is the kernel's own. Shapes are checked by the modules before they come here;
//! tensors are read in place and results handed over without a copy.

mod norm;
mod pool;
mod simconv;
mod storage;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, ExtensionType, Flex, backend_extension};

pub(crate) use norm::{InferencePlan, NormInference, NormPlan};
pub(crate) use simconv::ConvPlan;

/// An operand that may be left out.
#[derive(ExtensionType)]
pub(crate) enum Operand<B: Backend> {
    /// The tensor.
    Given(FloatTensor<B>),
    /// No tensor.
    Absent,
}

/// The differentiable operators of this crate.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait SimilarityOps: Backend {
    /// `[n, h_in, w_in, c_in]`, `[k, k, tap_width, c_out]`, `[c_out]` -> `[n, h_out, w_out, c_out]`.
    fn simconv(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: Operand<Self>,
        plan: ConvPlan,
    ) -> FloatTensor<Self>;

    /// Batch norm with the batch's own statistics over the active positions: the output
    /// `[n, h, w, c]`, and mean and variance `[c]`, which carry no gradient.
    fn norm_train(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        #[extension_type] residual: Operand<Self>,
        plan: NormPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The maximum over all positions, `[n, h, w, c]` -> `[n, c]`.
    fn global_max(input: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `sum z / (sum gate + 1e-3)` over all positions, `[n, h, w, c]`, `[n, h, w, 1]` -> `[n, c]`;
    /// the gate is a constant.
    fn gated_mean(input: FloatTensor<Self>, gate: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl SimilarityOps for Flex {
    fn simconv(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: Operand<Self>,
        plan: ConvPlan,
    ) -> FloatTensor<Self> {
        simconv::forward(&input, &weight, bias.as_ref(), &plan)
    }

    fn norm_train(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: Operand<Self>,
        plan: NormPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (output, statistics) = norm::forward(&input, &gamma, &beta, residual.as_ref(), &plan);
        let (mean, variance) = norm::tensors(statistics);
        (output, mean, variance)
    }

    fn global_max(input: FloatTensor<Self>) -> FloatTensor<Self> {
        pool::max(&input).0
    }

    fn gated_mean(input: FloatTensor<Self>, gate: FloatTensor<Self>) -> FloatTensor<Self> {
        pool::gated_mean(&input, &gate)
    }
}

impl<C: CheckpointStrategy> SimilarityOps for Autodiff<Flex, C> {
    fn simconv(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: Operand<Self>,
        plan: ConvPlan,
    ) -> FloatTensor<Self> {
        simconv::record::<C>(input, weight, bias, plan)
    }

    fn norm_train(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: Operand<Self>,
        plan: NormPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        norm::record::<C>(input, gamma, beta, residual, plan)
    }

    fn global_max(input: FloatTensor<Self>) -> FloatTensor<Self> {
        pool::record_max::<C>(input)
    }

    fn gated_mean(input: FloatTensor<Self>, gate: FloatTensor<Self>) -> FloatTensor<Self> {
        pool::record_gated_mean::<C>(input, gate)
    }
}

impl<B: Backend> Operand<B> {
    fn as_ref(&self) -> Option<&FloatTensor<B>> {
        match self {
            Self::Given(tensor) => Some(tensor),
            Self::Absent => None,
        }
    }
}

impl<B: Backend> From<Option<FloatTensor<B>>> for Operand<B> {
    fn from(tensor: Option<FloatTensor<B>>) -> Self {
        match tensor {
            Some(tensor) => Self::Given(tensor),
            None => Self::Absent,
        }
    }
}
