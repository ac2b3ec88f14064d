//! Pools over all positions of an image as operators.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use sren_kernels::pool::GlobalPool;

use super::storage::{Contiguous, CpuTensor, TrackedTensor, sizes, tensor};

const CHECKED: &str = "shapes are checked by the functions of sren::pool";

fn pool_of(shape: [usize; 4]) -> GlobalPool {
    let [batch, height, width, channels] = shape;
    GlobalPool::new(batch, height * width, channels).expect(CHECKED)
}

/// The maxima `[n, c]` and at which position of the image each was found.
pub(super) fn max(input: &CpuTensor) -> (CpuTensor, Vec<u32>) {
    let shape @ [batch, .., channels] = sizes::<4>(input);
    let found = pool_of(shape).max(Contiguous::of(input).values()).expect(CHECKED);
    (tensor(found.output, [batch, channels]), found.position)
}

pub(super) fn gated_mean(input: &CpuTensor, gate: &CpuTensor) -> CpuTensor {
    let shape @ [batch, .., channels] = sizes::<4>(input);
    let (input, gate) = (Contiguous::of(input), Contiguous::of(gate));
    let mean = pool_of(shape).gated_mean(input.values(), gate.values()).expect(CHECKED);
    tensor(mean, [batch, channels])
}

/// The maximum with its step on the autodiff graph.
pub(super) fn record_max<C: CheckpointStrategy>(input: TrackedTensor<C>) -> TrackedTensor<C> {
    let (output, position) = max(input.primitive());
    match MaxStep.prepare::<C>([input.node()]).compute_bound().stateful() {
        OpsKind::Tracked(step) => step.finish((sizes(input.primitive()), position.into()), output),
        OpsKind::UnTracked(step) => step.finish(output),
    }
}

/// The gated mean with its step on the autodiff graph.
pub(super) fn record_gated_mean<C: CheckpointStrategy>(
    input: TrackedTensor<C>,
    gate: TrackedTensor<C>,
) -> TrackedTensor<C> {
    let gate = gate.into_primitive();
    let output = gated_mean(input.primitive(), &gate);
    match GatedMeanStep.prepare::<C>([input.node()]).compute_bound().stateful() {
        OpsKind::Tracked(step) => step.finish((sizes(input.primitive()), gate), output),
        OpsKind::UnTracked(step) => step.finish(output),
    }
}

#[derive(Debug)]
struct MaxStep;

impl Backward<Flex, 1> for MaxStep {
    /// Shape of the input, positions of the maxima.
    type State = ([usize; 4], Arc<[u32]>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = Contiguous::of(&grads.consume::<Flex>(&ops.node));
        let (shape, position) = ops.state;
        if let [Some(node)] = ops.parents {
            let values = pool_of(shape).max_backward(&position, grad.values()).expect(CHECKED);
            grads.register::<Flex>(node.id, tensor(values, shape));
        }
    }
}

#[derive(Debug)]
struct GatedMeanStep;

impl Backward<Flex, 1> for GatedMeanStep {
    /// Shape of the input, gate.
    type State = ([usize; 4], CpuTensor);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = Contiguous::of(&grads.consume::<Flex>(&ops.node));
        let (shape, gate) = ops.state;
        if let [Some(node)] = ops.parents {
            let gate = Contiguous::of(&gate);
            let values =
                pool_of(shape).gated_mean_backward(gate.values(), grad.values()).expect(CHECKED);
            grads.register::<Flex>(node.id, tensor(values, shape));
        }
    }
}
