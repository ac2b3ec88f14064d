//! The similarity convolution as an operator.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::{Autodiff, Flex};
use sren_kernels::{SimConv, TapTable};

use super::Operand;
use super::storage::{Contiguous, CpuTensor, TrackedTensor, sizes, tensor};

/// Everything about a convolution but its tensors, whose shapes were checked against it.
#[derive(Debug, Clone)]
pub(crate) struct ConvPlan {
    pub(crate) conv: SimConv,
    pub(crate) taps: TapTable,
}

const CHECKED: &str = "shapes are checked by SimConv2d::forward";

pub(super) fn forward(
    input: &CpuTensor,
    weight: &CpuTensor,
    bias: Option<&CpuTensor>,
    plan: &ConvPlan,
) -> CpuTensor {
    let (input, weight) = (Contiguous::of(input), Contiguous::of(weight));
    let bias = bias.map(Contiguous::of);
    let ConvPlan { conv, taps } = plan;
    let bias = bias.as_ref().map(Contiguous::values);
    let output = conv.forward(taps, input.values(), weight.values(), bias).expect(CHECKED);
    let grid = taps.output_grid();
    tensor(output, [taps.batch(), grid.height, grid.width, conv.c_out()])
}

/// The convolution with its step on the autodiff graph.
pub(super) fn record<C: CheckpointStrategy>(
    input: TrackedTensor<C>,
    weight: TrackedTensor<C>,
    bias: Operand<Autodiff<Flex, C>>,
    plan: ConvPlan,
) -> TrackedTensor<C> {
    match bias {
        Operand::Given(bias) => {
            let nodes = [input.node(), weight.node(), bias.node()];
            record_step::<C, 3>(nodes, input, weight, Some(bias.into_primitive()), plan)
        }
        Operand::Absent => {
            let nodes = [input.node(), weight.node()];
            record_step::<C, 2>(nodes, input, weight, None, plan)
        }
    }
}

fn record_step<C: CheckpointStrategy, const N: usize>(
    nodes: [NodeGuard; N],
    input: TrackedTensor<C>,
    weight: TrackedTensor<C>,
    bias: Option<CpuTensor>,
    plan: ConvPlan,
) -> TrackedTensor<C> {
    let output = forward(input.primitive(), weight.primitive(), bias.as_ref(), &plan);
    match SimConvStep.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut step) => {
            let state =
                State { input: step.checkpoint(&input), weight: step.checkpoint(&weight), plan };
            step.finish(state, output)
        }
        OpsKind::UnTracked(step) => step.finish(output),
    }
}

#[derive(Debug)]
struct SimConvStep;

#[derive(Debug, Clone)]
struct State {
    input: NodeId,
    weight: NodeId,
    plan: ConvPlan,
}

/// Parents are input, weight and, if `N` is 3, bias.
impl<const N: usize> Backward<Flex, N> for SimConvStep {
    type State = State;

    fn backward(self, ops: Ops<State, N>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad_output = Contiguous::of(&grads.consume::<Flex>(&ops.node));
        let State { input, weight, plan: ConvPlan { conv, taps } } = ops.state;
        let input: CpuTensor = checkpointer.retrieve_node_output(input);
        let weight: CpuTensor = checkpointer.retrieve_node_output(weight);
        let (input_sizes, weight_sizes) = (sizes::<4>(&input), sizes::<4>(&weight));
        let (input, weight) = (Contiguous::of(&input), Contiguous::of(&weight));
        let need_input = ops.parents[0].is_some();
        let gradients = conv
            .backward(&taps, input.values(), weight.values(), grad_output.values(), need_input)
            .expect(CHECKED);

        let mut parents = ops.parents.into_iter();
        if let (Some(Some(node)), Some(values)) = (parents.next(), gradients.input) {
            grads.register::<Flex>(node.id, tensor(values, input_sizes));
        }
        if let Some(Some(node)) = parents.next() {
            grads.register::<Flex>(node.id, tensor(gradients.weight, weight_sizes));
        }
        if let Some(Some(node)) = parents.next() {
            grads.register::<Flex>(node.id, tensor(gradients.bias, [conv.c_out()]));
        }
    }
}
