//! Adam, AdamW and SGD with momentum, in one pass over a parameter's values, where Burn's make one
//! per term. Burn keys state by ids that differ between processes; ours is plain
//! arrays under the names of the parameters, saved like weights. A test holds it to Burn's steps.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sren::{ParameterPath, Weights};

use crate::error::{LabError, Result};

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;
/// Smaller than this is nothing. The decay takes values that have no gradient there, and on to numbers
/// below 1e-38, with which arithmetic is many times as slow.
const LEAST: f32 = 1e-20;
/// Values that one thread updates at a time.
const CHUNK: usize = 1 << 14;

/// Which optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum OptimiserKind {
    /// Adam; the decay is added to the gradient (coupled L2), as in the paper.
    Adam {
        /// L2 penalty.
        weight_decay: f32,
    },
    /// Adam; the decay shrinks the weights themselves.
    #[serde(rename = "adamw")]
    AdamW {
        /// Decay at a learning rate of 1.
        weight_decay: f32,
    },
    /// Stochastic gradient descent; the decay is added to the gradient.
    Sgd {
        /// Momentum, 0 to 1.
        momentum: f32,
        /// L2 penalty.
        weight_decay: f32,
    },
}

impl OptimiserKind {
    /// Returns an error that begins with `name` if its numbers are none of an optimiser.
    pub(super) fn check(self, name: &str) -> Result<()> {
        let (momentum, weight_decay) = match self {
            Self::Adam { weight_decay } | Self::AdamW { weight_decay } => (0.0, weight_decay),
            Self::Sgd { momentum, weight_decay } => (momentum, weight_decay),
        };
        if !(0.0..1.0).contains(&momentum) {
            return Err(LabError::invalid(name, "a momentum in 0..1", momentum.to_string()));
        }
        if !(weight_decay.is_finite() && weight_decay >= 0.0) {
            let expected = "a finite weight decay of 0 or more";
            return Err(LabError::invalid(name, expected, weight_decay.to_string()));
        }
        Ok(())
    }
}

/// An optimiser with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimiser {
    kind: OptimiserKind,
    steps: u64,
    moments: BTreeMap<String, [Vec<f32>; 2]>,
}

impl Optimiser {
    /// One that has made no step.
    pub fn new(kind: OptimiserKind) -> Self {
        Self { kind, steps: 0, moments: BTreeMap::new() }
    }

    /// Moves the parameters of `module` against their gradients. Returns an error if a gradient is not
    /// finite.
    pub fn step<M: Module>(
        &mut self,
        rate: f64,
        module: M,
        gradients: GradientsParams,
    ) -> Result<M> {
        self.steps += 1;
        let mut pass = Pass {
            path: ParameterPath::default(),
            rate: rate as f32,
            gradients,
            optimiser: self,
            bad: None,
        };
        let module = module.map(&mut pass);
        match pass.bad {
            None => Ok(module),
            Some(name) => {
                Err(LabError::invalid("gradient", "finite values", format!("none at {name}")))
            }
        }
    }

    /// Puts the state into `weights`.
    pub fn save(&self, weights: &mut Weights) {
        weights.metadata.insert("optimiser_steps".into(), self.steps.to_string());
        for (name, moments) in &self.moments {
            for (order, values) in moments.iter().enumerate().filter(|(_, v)| !v.is_empty()) {
                let key = format!("optimiser{order}.{name}");
                weights.tensors.insert(key, (vec![values.len()], values.clone()));
            }
        }
    }

    /// Takes the state out of `weights`.
    pub fn load(kind: OptimiserKind, weights: &mut Weights) -> Option<Self> {
        let steps = weights.metadata.get("optimiser_steps")?.parse().ok()?;
        let mut moments: BTreeMap<String, [Vec<f32>; 2]> = BTreeMap::new();
        for order in 0..2 {
            let prefix = format!("optimiser{order}.");
            let is_mine = |name: &String| name.starts_with(&prefix);
            let names: Vec<String> =
                weights.tensors.keys().filter(|n| is_mine(n)).cloned().collect();
            for name in names {
                let (_, values) = weights.tensors.remove(&name)?;
                moments.entry(name[prefix.len()..].to_string()).or_default()[order] = values;
            }
        }
        Some(Self { kind, steps, moments })
    }
}

struct Pass<'a> {
    path: ParameterPath,
    rate: f32,
    gradients: GradientsParams,
    optimiser: &'a mut Optimiser,
    bad: Option<String>,
}

impl ModuleMapper for Pass<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return param;
        };
        let name = self.path.name();
        let gradient = values(gradient);
        if gradient.iter().any(|g| !g.is_finite()) {
            self.bad.get_or_insert(name);
            return param;
        }
        let Optimiser { kind, steps, moments } = &mut *self.optimiser;
        let moments = moments.entry(name).or_default();
        let (kind, steps, rate) = (*kind, *steps, self.rate);
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let mut values = values(tensor);
            update(kind, steps, rate, &mut values, &gradient, moments);
            Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
        })
    }
}

/// The values of a tensor, without a copy where it is the only one that has them.
fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as().expect("every float type can be read as f32")
}

/// One step of one parameter. Moments that the optimiser does not have stay empty.
fn update(
    kind: OptimiserKind,
    steps: u64,
    rate: f32,
    values: &mut [f32],
    gradient: &[f32],
    [first, second]: &mut [Vec<f32>; 2],
) {
    first.resize(values.len(), 0.0);
    match kind {
        OptimiserKind::Sgd { momentum, weight_decay } => {
            let chunks = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
            chunks.zip(first.par_chunks_mut(CHUNK)).for_each(|((values, gradient), first)| {
                for ((v, g), m) in values.iter_mut().zip(gradient).zip(first) {
                    *m = or_zero(momentum * *m + g + weight_decay * *v);
                    *v = or_zero(*v - rate * *m);
                }
            });
        }
        OptimiserKind::Adam { weight_decay } | OptimiserKind::AdamW { weight_decay } => {
            let coupled = matches!(kind, OptimiserKind::Adam { .. });
            let (l2, shrink) =
                if coupled { (weight_decay, 1.0) } else { (0.0, 1.0 - rate * weight_decay) };
            second.resize(values.len(), 0.0);
            let power = i32::try_from(steps).unwrap_or(i32::MAX);
            let step = rate / (1.0 - BETA1.powi(power));
            let root = (1.0 - BETA2.powi(power)).sqrt().recip();
            let chunks = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
            let moments = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK));
            chunks.zip(moments).for_each(|((values, gradient), (first, second))| {
                for (((v, g), m), s) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                    let g = g + l2 * *v;
                    *m = or_zero(BETA1 * *m + (1.0 - BETA1) * g);
                    *s = BETA2 * *s + (1.0 - BETA2) * g * g;
                    *v = or_zero(shrink * *v - step * *m / (s.sqrt() * root + EPSILON));
                }
            });
        }
    }
}

/// The value, or 0 if it is next to nothing.
fn or_zero(value: f32) -> f32 {
    if value.abs() < LEAST { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::{Linear, LinearConfig};
    use burn::optim::{AdamConfig, AdamWConfig, SgdConfig, momentum::MomentumConfig};
    use burn::tensor::Device;
    use sren::Precision;

    /// Five steps on `sum (x W + b)^2`.
    fn train(mut step: impl FnMut(Linear, GradientsParams) -> Linear) -> Vec<f32> {
        let device = Device::flex().autodiff();
        let values: Vec<f32> = (0..12).map(|i| (i as f32 * 0.7).sin()).collect();
        let weight = TensorData::new(values, [4, 3]);
        let mut layer = LinearConfig::new(4, 3).with_bias(false).init(&device);
        layer.weight = layer.weight.map(|_| Tensor::from_data(weight, &device).require_grad());
        let x = Tensor::<2>::from_data([[1.0f32, -2.0, 0.5, 3.0], [0.3, 0.1, -1.0, 2.0]], &device);
        for _ in 0..5 {
            let loss = layer.forward(x.clone()).square().sum();
            let gradients = GradientsParams::from_grads(loss.backward(), &layer);
            layer = step(layer, gradients);
        }
        layer.weight.val().into_data().iter::<f32>().collect()
    }

    fn ours(kind: OptimiserKind) -> Vec<f32> {
        let mut optimiser = Optimiser::new(kind);
        train(|layer, gradients| optimiser.step(0.01, layer, gradients).unwrap())
    }

    #[test]
    fn steps_are_those_of_burn() {
        let mut adam = AdamConfig::new().with_epsilon(1e-8).init();
        let adam = train(|layer, gradients| adam.step(0.01, layer, gradients));
        let mut adamw = AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(0.1).init();
        let adamw = train(|layer, gradients| adamw.step(0.01, layer, gradients));
        let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
        let mut sgd = SgdConfig::new().with_momentum(Some(momentum)).init();
        let sgd = train(|layer, gradients| sgd.step(0.01, layer, gradients));
        for (ours, burns) in [
            (ours(OptimiserKind::Adam { weight_decay: 0.0 }), adam),
            (ours(OptimiserKind::AdamW { weight_decay: 0.1 }), adamw),
            (ours(OptimiserKind::Sgd { momentum: 0.9, weight_decay: 0.0 }), sgd),
        ] {
            let off = ours.iter().zip(&burns).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-5, "{ours:?} is not {burns:?}");
        }
    }

    #[test]
    fn coupled_decay_is_part_of_the_gradient() {
        let (mut value, mut moments) = ([2.0f32], [vec![], vec![]]);
        let kind = OptimiserKind::Sgd { momentum: 0.0, weight_decay: 0.5 };
        update(kind, 1, 0.1, &mut value, &[3.0], &mut moments);
        assert!((value[0] - 1.6).abs() < 1e-6);
        // Adam's first step is one learning rate long, whatever the gradient with its decay is.
        update(
            OptimiserKind::Adam { weight_decay: 0.5 },
            1,
            0.1,
            &mut value,
            &[0.0],
            &mut [vec![], vec![]],
        );
        assert!((value[0] - 1.5).abs() < 1e-6);
    }

    #[test]
    fn what_only_the_decay_moves_vanishes_without_numbers_that_are_slow() {
        for kind in [
            OptimiserKind::Adam { weight_decay: 1e-4 },
            OptimiserKind::AdamW { weight_decay: 1.0 },
            OptimiserKind::Sgd { momentum: 0.5, weight_decay: 1.0 },
        ] {
            let (mut values, mut moments) = ([0.3f32, -2e-3], [vec![], vec![]]);
            for step in 1..60_000 {
                update(kind, step, 0.01, &mut values, &[0.0; 2], &mut moments);
                assert!(values.iter().chain(&moments[0]).all(|v| !v.is_subnormal()), "{kind:?}");
            }
            assert!(values.iter().all(|v| v.abs() < 1e-12), "{kind:?} {values:?}");
        }
    }

    #[test]
    fn a_saved_state_goes_on_and_bad_gradients_are_named() {
        let kind = OptimiserKind::Adam { weight_decay: 0.01 };
        let mut optimiser = Optimiser::new(kind);
        train(|layer, gradients| optimiser.step(0.01, layer, gradients).unwrap());
        let mut weights = Weights::default();
        optimiser.save(&mut weights);
        let mut weights =
            Weights::from_bytes(&weights.to_bytes(Precision::Single).unwrap()).unwrap();
        assert_eq!(Optimiser::load(kind, &mut weights), Some(optimiser));
        assert!(weights.tensors.is_empty());

        let device = Device::flex().autodiff();
        let layer = LinearConfig::new(1, 1).init(&device);
        let mut gradients = GradientsParams::new();
        let nan = Tensor::<2>::from_data([[f32::NAN]], &Device::flex());
        gradients.register(layer.weight.id, nan);
        let error = Optimiser::new(kind).step(0.1, layer, gradients).unwrap_err().to_string();
        assert_eq!(error, "gradient: expected finite values, got none at weight");
    }
}
