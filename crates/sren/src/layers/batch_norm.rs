//! Batch norm over the active positions as a layer.

use burn::backend::Dispatch;
use burn::config::Config;
use burn::module::{
    Content, DisplaySettings, Flag, Initializer, Module, ModuleDisplay, Param, RunningState,
};
use burn::tensor::{Device, Tensor, TensorData, activation};
use sren_kernels::norm::BatchNorm;

use super::feature_map::check_values;
use super::mask::Mask;
use super::simconv::check_parameter;
use crate::error::{Error, Result};
use crate::ops::{InferencePlan, NormInference, NormPlan, SimilarityOps};

/// Configuration of a [batch norm over active positions](MaskedBatchNorm).
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct MaskedBatchNormConfig {
    /// Number of channels.
    pub channels: usize,
    /// Added to the variance.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// How far the running averages move towards a batch's statistics, 0 to 1.
    #[config(default = 0.1)]
    pub momentum: f64,
    /// Whether a ReLU follows, in the same pass.
    #[config(default = false)]
    pub relu: bool,
}

/// `gate relu(gamma (x - mean) / sqrt(variance + epsilon) + beta + residual)`, channels last; gate,
/// ReLU and residual are optional. With a list of active positions the statistics are theirs, and all
/// other positions of the output are exactly zero. Made by [`MaskedBatchNormConfig`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sren::{Mask, MaskedBatchNormConfig};
///
/// let device = Device::flex();
/// let norm = MaskedBatchNormConfig::new(8).with_relu(true).init(&device)?;
/// let first_only = Mask { active: Some([0].into()), gate: None };
/// let output = norm.forward(Tensor::ones([1, 2, 2, 8], &device), &first_only)?;
/// assert!(output.sum().into_scalar::<f32>() < 8.001);
/// # Ok::<(), sren::Error>(())
/// ```
///
/// Like Burn's own batch norm it normalises by the batch on an autodiff device, unless frozen, and
/// by the running averages elsewhere.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MaskedBatchNorm {
    /// Learned scale `[c]`.
    pub gamma: Param<Tensor<1>>,
    /// Learned shift `[c]`.
    pub beta: Param<Tensor<1>>,
    /// Whether training behaviour is enabled for this layer.
    pub training: Param<Flag>,
    /// Running average of the mean `[c]`.
    pub running_mean: RunningState<Tensor<1>>,
    /// Running average of the variance `[c]`.
    pub running_var: RunningState<Tensor<1>>,
    momentum: f64,
    epsilon: f64,
    relu: bool,
}

impl MaskedBatchNormConfig {
    /// A new layer on `device`.
    pub fn init(&self, device: &Device) -> Result<MaskedBatchNorm> {
        BatchNorm::new(self.channels, self.epsilon as f32, self.relu)?;
        if !(0.0..=1.0).contains(&self.momentum) {
            return Err(Error::shape(
                "MaskedBatchNormConfig::init",
                "a momentum in 0..=1",
                self.momentum.to_string(),
            ));
        }
        let channels = [self.channels];
        Ok(MaskedBatchNorm {
            gamma: Initializer::Ones.init(channels, device),
            beta: Initializer::Zeros.init(channels, device),
            training: Param::from_bool(true),
            running_mean: RunningState::new(Tensor::zeros(channels, device)),
            running_var: RunningState::new(Tensor::ones(channels, device)),
            momentum: self.momentum,
            epsilon: self.epsilon,
            relu: self.relu,
        })
    }
}

impl MaskedBatchNorm {
    /// Normalises `[n, h, w, c]` over the active positions of `mask`, then gates.
    pub fn forward(&self, input: Tensor<4>, mask: &Mask) -> Result<Tensor<4>> {
        self.normalise(input, None, mask)
    }

    /// [`forward`](Self::forward) with `residual` `[n, h, w, c]` added before the ReLU.
    pub fn forward_residual(
        &self,
        input: Tensor<4>,
        residual: Tensor<4>,
        mask: &Mask,
    ) -> Result<Tensor<4>> {
        self.normalise(input, Some(residual), mask)
    }

    fn normalise(
        &self,
        input: Tensor<4>,
        residual: Option<Tensor<4>>,
        mask: &Mask,
    ) -> Result<Tensor<4>> {
        const OPERATION: &str = "MaskedBatchNorm::forward";
        let [channels] = self.gamma.dims();
        let [n, h, w, _] = input.dims();
        check_values(OPERATION, &input, [n, h, w, channels])?;
        if let Some(residual) = &residual {
            check_values(OPERATION, residual, input.dims())?;
        }
        mask.check(OPERATION, n * h * w)?;
        let device = input.device();
        check_parameter(OPERATION, "gamma", &self.gamma, [channels], &device)?;
        check_parameter(OPERATION, "beta", &self.beta, [channels], &device)?;
        let running = [&self.running_mean, &self.running_var].map(|average| average.value().dims());
        if running != [[channels]; 2] {
            let expected = format!("running averages of [{channels}]");
            return Err(Error::shape(OPERATION, expected, format!("{running:?}")));
        }
        let norm = BatchNorm::new(channels, self.epsilon as f32, self.relu)?;
        let plan = NormPlan { norm, relu: self.relu, mask: mask.clone() };
        if !device.is_autodiff() {
            return Ok(self.infer(input, residual, plan));
        }
        if !self.training.is_enabled() {
            return Ok(self.infer_on_graph(input, residual, &plan.mask));
        }
        Ok(self.train_step(input, residual, plan))
    }

    /// `x scale + shift`: what the layer does by its running averages, before residual and ReLU.
    pub(crate) fn scale_and_shift(&self) -> (Vec<f64>, Vec<f64>) {
        let values = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
        let gamma = values(self.gamma.val()).into_iter();
        let variance = values(self.running_var.value()).into_iter();
        let deviation = variance.map(|variance| (variance + self.epsilon).sqrt());
        let scale: Vec<f64> = gamma.zip(deviation).map(|(gamma, sigma)| gamma / sigma).collect();
        let (beta, mean) = (values(self.beta.val()), values(self.running_mean.value()));
        let shift = beta.iter().zip(&mean).zip(&scale);
        let shift = shift.map(|((beta, mean), scale)| beta - mean * scale).collect();
        (scale, shift)
    }

    fn train_step(
        &self,
        input: Tensor<4>,
        residual: Option<Tensor<4>>,
        plan: NormPlan,
    ) -> Tensor<4> {
        let device = input.device();
        let [n, h, w, _] = input.dims();
        let count = plan.mask.active.as_ref().map_or(n * h * w, |list| list.len());
        let (output, mean, variance) = <Dispatch as SimilarityOps>::norm_train(
            input.into_dispatch(),
            self.gamma.val().into_dispatch(),
            self.beta.val().into_dispatch(),
            residual.map(Tensor::into_dispatch).into(),
            plan,
        );
        // A batch without any active position says nothing about mean and variance.
        if count > 0 {
            for (running, batch) in [(&self.running_mean, mean), (&self.running_var, variance)] {
                let batch = Tensor::<1>::from_dispatch(batch).detach();
                let old = running.value_sync().to_device(&device);
                let new = old.mul_scalar(1.0 - self.momentum).add(batch.mul_scalar(self.momentum));
                running.update(new.detach());
            }
        }
        Tensor::from_dispatch(output)
    }

    fn infer(&self, input: Tensor<4>, residual: Option<Tensor<4>>, plan: NormPlan) -> Tensor<4> {
        let values = |running: &RunningState<Tensor<1>>| -> Vec<f32> {
            running.value().into_data().iter::<f32>().collect()
        };
        let (mean, variance) = (values(&self.running_mean), values(&self.running_var));
        Tensor::from_dispatch(<Dispatch as NormInference>::norm_inference(
            input.into_dispatch(),
            self.gamma.val().into_dispatch(),
            self.beta.val().into_dispatch(),
            residual.map(Tensor::into_dispatch).into(),
            InferencePlan { plan, mean, variance },
        ))
    }

    /// A frozen layer inside of a training network: the same formula from Burn's own operators,
    /// so that gradients pass.
    fn infer_on_graph(
        &self,
        input: Tensor<4>,
        residual: Option<Tensor<4>>,
        mask: &Mask,
    ) -> Tensor<4> {
        let device = input.device();
        let [n, h, w, channels] = input.dims();
        let mean = self.running_mean.value().to_device(&device);
        let variance = self.running_var.value().to_device(&device);
        let scale = self.gamma.val() / (variance + self.epsilon).sqrt();
        let shift = self.beta.val() - mean * scale.clone();
        let broad = |values: Tensor<1>| values.reshape([1, 1, 1, channels]);
        let mut output = input * broad(scale) + broad(shift);
        if let Some(residual) = residual {
            output = output + residual;
        }
        if self.relu {
            output = activation::relu(output);
        }
        let gate = |position: usize| mask.gate.as_ref().map_or(1.0, |gate| gate[position]);
        let factors: Vec<f32> = match &mask.active {
            None if mask.gate.is_none() => return output,
            None => (0..n * h * w).map(gate).collect(),
            Some(list) => {
                let mut factors = vec![0.0; n * h * w];
                list.iter().for_each(|&at| factors[at as usize] = gate(at as usize));
                factors
            }
        };
        output * Tensor::from_data(TensorData::new(factors, [n, h, w, 1]), &device)
    }
}

impl ModuleDisplay for MaskedBatchNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [channels] = self.gamma.dims();
        content
            .add("channels", &channels)
            .add("momentum", &self.momentum)
            .add("epsilon", &self.epsilon)
            .add("relu", &self.relu)
            .optional()
    }
}
