//! Batch norm over active positions as an operator.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, backend_extension};
use sren_kernels::norm::{self, Affine, BatchNorm, Statistics};

use super::Operand;
use super::storage::{Contiguous, CpuTensor, TrackedTensor, sizes, tensor};
use crate::layers::Mask;

/// A batch norm and the positions it is over.
#[derive(Debug, Clone)]
pub(crate) struct NormPlan {
    pub(crate) norm: BatchNorm,
    pub(crate) relu: bool,
    pub(crate) mask: Mask,
}

impl NormPlan {
    fn mask(&self) -> norm::Mask<'_> {
        norm::Mask { active: self.mask.active.as_deref(), gate: self.mask.gate.as_deref() }
    }
}

/// A batch norm with given mean and variance.
#[derive(Debug, Clone)]
pub(crate) struct InferencePlan {
    pub(crate) plan: NormPlan,
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

/// Batch norm outside of autodiff, where mean and variance are given.
#[backend_extension(Flex)]
pub(crate) trait NormInference: Backend {
    /// `[n, h, w, c]` -> `[n, h, w, c]`.
    fn norm_inference(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        #[extension_type] residual: Operand<Self>,
        plan: InferencePlan,
    ) -> FloatTensor<Self>;
}

const CHECKED: &str = "shapes are checked by MaskedBatchNorm::forward";

impl NormInference for Flex {
    fn norm_inference(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: Operand<Self>,
        plan: InferencePlan,
    ) -> FloatTensor<Self> {
        let InferencePlan { plan, mean, variance } = plan;
        let statistics = Statistics { mean, variance, count: 0 };
        normalise(&input, &gamma, &beta, residual.as_ref(), &statistics, &plan)
    }
}

pub(super) fn forward(
    input: &CpuTensor,
    gamma: &CpuTensor,
    beta: &CpuTensor,
    residual: Option<&CpuTensor>,
    plan: &NormPlan,
) -> (CpuTensor, Statistics) {
    let values = Contiguous::of(input);
    let statistics = plan.norm.statistics(values.values(), plan.mask().active).expect(CHECKED);
    (normalise(input, gamma, beta, residual, &statistics, plan), statistics)
}

fn normalise(
    input: &CpuTensor,
    gamma: &CpuTensor,
    beta: &CpuTensor,
    residual: Option<&CpuTensor>,
    statistics: &Statistics,
    plan: &NormPlan,
) -> CpuTensor {
    let shape = sizes::<4>(input);
    let (input, gamma, beta) = (Contiguous::of(input), Contiguous::of(gamma), Contiguous::of(beta));
    let residual = residual.map(Contiguous::of);
    let residual = residual.as_ref().map(Contiguous::values);
    let affine = Affine { gamma: gamma.values(), beta: beta.values() };
    let output = plan.norm.forward(input.values(), affine, statistics, residual, plan.mask());
    tensor(output.expect(CHECKED), shape)
}

/// Mean and variance as tensors.
pub(super) fn tensors(statistics: Statistics) -> (CpuTensor, CpuTensor) {
    let channels = [statistics.mean.len()];
    (tensor(statistics.mean, channels), tensor(statistics.variance, channels))
}

/// The batch norm with its step on the autodiff graph.
pub(super) fn record<C: CheckpointStrategy>(
    input: TrackedTensor<C>,
    gamma: TrackedTensor<C>,
    beta: TrackedTensor<C>,
    residual: Operand<Autodiff<Flex, C>>,
    plan: NormPlan,
) -> (TrackedTensor<C>, TrackedTensor<C>, TrackedTensor<C>) {
    let (output, statistics) = forward(
        input.primitive(),
        gamma.primitive(),
        beta.primitive(),
        residual.as_ref().map(|tensor| tensor.primitive()),
        &plan,
    );
    let (mean, variance) = tensors(statistics.clone());
    let affine = [gamma.primitive().clone(), beta.primitive().clone()];
    let finished = match residual {
        Operand::Given(residual) => {
            let nodes = [input.node(), gamma.node(), beta.node(), residual.node()];
            record_step::<C, 4>(nodes, &input, affine, output, statistics, plan)
        }
        Operand::Absent => {
            let nodes = [input.node(), gamma.node(), beta.node()];
            record_step::<C, 3>(nodes, &input, affine, output, statistics, plan)
        }
    };
    let constant = TrackedTensor::<C>::new;
    (finished, constant(mean), constant(variance))
}

fn record_step<C: CheckpointStrategy, const N: usize>(
    nodes: [NodeGuard; N],
    input: &TrackedTensor<C>,
    affine: [CpuTensor; 2],
    output: CpuTensor,
    statistics: Statistics,
    plan: NormPlan,
) -> TrackedTensor<C> {
    match NormStep.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut step) => {
            // The next layer keeps the output as its input: holding on to it costs nothing.
            let kept = plan.relu.then(|| output.clone());
            let state =
                State { input: step.checkpoint(input), affine, output: kept, statistics, plan };
            step.finish(state, output)
        }
        OpsKind::UnTracked(step) => step.finish(output),
    }
}

#[derive(Debug)]
struct NormStep;

#[derive(Debug, Clone)]
struct State {
    input: NodeId,
    affine: [CpuTensor; 2],
    output: Option<CpuTensor>,
    statistics: Statistics,
    plan: NormPlan,
}

/// Parents are input, gamma, beta and, if `N` is 4, residual.
impl<const N: usize> Backward<Flex, N> for NormStep {
    type State = State;

    fn backward(self, ops: Ops<State, N>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node);
        let State { input, affine: [gamma, beta], output, statistics, plan } = ops.state;
        let input: CpuTensor = checkpointer.retrieve_node_output(input);
        let shape = sizes::<4>(&input);
        let grad_output = Contiguous::of(&grad);
        let (input, gamma, beta) =
            (Contiguous::of(&input), Contiguous::of(&gamma), Contiguous::of(&beta));
        let output = output.as_ref().map(Contiguous::of);
        let residual_node = ops.parents.get(3).cloned().flatten();
        // A sum alone hands its gradient on as it is.
        let passes = !plan.relu && plan.mask.active.is_none() && plan.mask.gate.is_none();
        let gradients = plan
            .norm
            .backward(
                input.values(),
                output.as_ref().map_or(&[], Contiguous::values),
                Affine { gamma: gamma.values(), beta: beta.values() },
                &statistics,
                grad_output.values(),
                residual_node.is_some() && !passes,
                plan.mask(),
            )
            .expect(CHECKED);

        let channels = [statistics.mean.len()];
        let mut parents = ops.parents.into_iter();
        if let Some(Some(node)) = parents.next() {
            grads.register::<Flex>(node.id, tensor(gradients.input, shape));
        }
        if let Some(Some(node)) = parents.next() {
            grads.register::<Flex>(node.id, tensor(gradients.gamma, channels));
        }
        if let Some(Some(node)) = parents.next() {
            grads.register::<Flex>(node.id, tensor(gradients.beta, channels));
        }
        if let Some(node) = residual_node {
            let residual = gradients.residual.map_or(grad, |values| tensor(values, shape));
            grads.register::<Flex>(node.id, residual);
        }
    }
}
