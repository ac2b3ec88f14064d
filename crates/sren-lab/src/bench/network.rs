//! Whole networks on digits, for all four equivariance groups, with pose estimation.

use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Int, Tensor, TensorData};
use serde::Serialize;
use sren::models::{Architecture, BackboneConfig, Network, NetworkConfig, TrainingBatch};
use sren::{Equivariance, Similarity};
use sren_data::{Dataset, Split};

use super::layer::BATCH;
use crate::error::Result;
use crate::inference::inference_device;
use crate::threads::with_threads;
use crate::training::{Optimiser, OptimiserKind, Preset, with_positions};

/// One network with one equivariance group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkRow {
    /// Its name.
    pub network: String,
    /// Equivariance group: cnn (none), so2 (rotation), scale or sren (similarity).
    pub model: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Training images per second: forward, backward, Adam.
    pub training_images_per_second: f64,
    /// Inference images per second.
    pub inference_images_per_second: f64,
    /// Time of a training step over that of the CNN.
    pub training_to_cnn: f64,
    /// Time of inference over that of the CNN.
    pub inference_to_cnn: f64,
    /// Shares of a training step: poses, forward, backward, Adam.
    pub training_shares: [f64; 4],
}

/// A network to measure, and the number of training positions per image, 0 for all.
struct Variant {
    network: String,
    config: NetworkConfig,
    positions: usize,
}

/// Measures `small`, trained as by the default preset, `blocks` and `resnet18`, each also with all
/// positions and, where they have blocks, with relative-pose kernels.
pub fn networks(repetitions: usize, threads: usize) -> Result<Vec<NetworkRow>> {
    let mut rows = Vec::new();
    for arch in [Architecture::Small, Architecture::Blocks, Architecture::Resnet18] {
        let config = arch.config(1, 10);
        let drawn = match arch {
            Architecture::Small => Preset::Default.config()?.positions as usize,
            _ => 0,
        };
        let variant = |suffix: &str, config: NetworkConfig, positions: usize| {
            let network = format!("{}{suffix}", arch.name());
            Variant { network, config, positions }
        };
        let kinds = Equivariance::ALL.iter();
        let mut variants: Vec<Variant> =
            kinds.map(|kind| variant("", arch.config_for(*kind, 1, 10), drawn)).collect();
        if drawn > 0 {
            variants.push(variant(" active positions", config.clone(), 0));
        }
        if let BackboneConfig::Residual(residual) = &config.backbone {
            let mut relative = config.clone();
            let residual = residual.clone().with_relative_pose(true);
            relative.backbone = BackboneConfig::Residual(residual);
            variants.push(variant(" relative pose", relative, 0));
        }
        variants.push(variant(" all positions", config.with_active_only(false), 0));
        rows.extend(with_threads(threads, || variants_of(variants, repetitions, threads))??);
    }
    Ok(rows)
}

/// The first variant is the CNN.
fn variants_of(
    variants: Vec<Variant>,
    repetitions: usize,
    threads: usize,
) -> Result<Vec<NetworkRow>> {
    let mut rows: Vec<NetworkRow> = Vec::new();
    let mut cnn = None;
    for Variant { network, config, positions } in variants {
        let Times { parts, training, inference } = measure(&config, positions, repetitions)?;
        let [cnn_training, cnn_inference] = *cnn.get_or_insert([training, inference]);
        let whole: f64 = parts.iter().sum();
        rows.push(NetworkRow {
            network,
            model: config.equivariance.name(),
            threads,
            training_images_per_second: 1e3 * BATCH as f64 / training,
            inference_images_per_second: 1e3 * BATCH as f64 / inference,
            training_to_cnn: training / cnn_training,
            inference_to_cnn: inference / cnn_inference,
            training_shares: parts.map(|part| part / whole),
        });
    }
    Ok(rows)
}

/// Minimum milliseconds of the parts of a training step, and of inference on a batch of digits.
struct Times {
    /// Poses, forward, backward, Adam.
    parts: [f64; 4],
    training: f64,
    inference: f64,
}

fn measure(config: &NetworkConfig, positions: usize, repetitions: usize) -> Result<Times> {
    let mut step = TrainingStep::new(config, BATCH, positions)?;
    let mut times =
        Times { parts: [f64::INFINITY; 4], training: f64::INFINITY, inference: f64::INFINITY };
    for repetition in 0..=repetitions {
        let parts = step.run()?;
        let plain = step.network.valid();
        let images = step.images.clone().inner();
        let start = Instant::now();
        drop(plain.forward(images)?);
        let inference = start.elapsed().as_secs_f64() * 1e3;
        // The first round is a warm-up.
        if repetition > 0 {
            times.parts.iter_mut().zip(parts).for_each(|(least, part)| *least = least.min(part));
            times.training = times.training.min(parts.iter().sum());
            times.inference = times.inference.min(inference);
        }
    }
    Ok(times)
}

/// A network that is trained on one batch of digits, step by step.
#[derive(Debug)]
pub struct TrainingStep {
    images: Tensor<4>,
    targets: Tensor<1, Int>,
    network: Network,
    optimiser: Optimiser,
    positions: usize,
    steps: usize,
}

impl TrainingStep {
    /// `batch` digits, `positions` positions of each, 0 for all; Adam with the paper's decay.
    pub fn new(config: &NetworkConfig, batch: usize, positions: usize) -> Result<Self> {
        let device = inference_device().autodiff();
        let indices: Vec<usize> = (0..batch).collect();
        let digits = Dataset::mnist(Split::Train)?.batch(&indices, |_| Ok(Similarity::IDENTITY))?;
        let labels: Vec<i32> = digits.labels.iter().map(|label| *label as i32).collect();
        Ok(Self {
            images: Tensor::from_data(TensorData::new(digits.images, digits.shape), &device),
            targets: Tensor::from_data(TensorData::new(labels, [batch]), &device),
            network: config.init(&device)?,
            optimiser: Optimiser::new(OptimiserKind::Adam { weight_decay: 0.01 }),
            positions,
            steps: 0,
        })
    }

    /// One step: milliseconds of poses, forward, backward, Adam.
    pub fn run(&mut self) -> Result<[f64; 4]> {
        let batch = self.images.dims()[0];
        let mut clock = vec![Instant::now()];
        let mut fields = self.network.pose_fields(&self.images)?;
        if self.positions > 0 {
            let indices: Vec<usize> = (0..batch).collect();
            fields = with_positions(fields, self.positions, 1, self.steps, &indices)?;
        }
        let frames = self.network.frames_of(fields)?;
        clock.push(Instant::now());
        let (images, targets) = (self.images.clone(), self.targets.clone());
        let digits =
            TrainingBatch { images, targets, transforms: vec![Similarity::IDENTITY; batch] };
        let loss = self.network.loss(digits, &frames, None)?.loss;
        clock.push(Instant::now());
        let gradients = GradientsParams::from_grads(loss.backward(), &self.network);
        clock.push(Instant::now());
        self.network = self.optimiser.step(1e-3, self.network.clone(), gradients)?;
        clock.push(Instant::now());
        self.steps += 1;
        Ok(std::array::from_fn(|part| (clock[part + 1] - clock[part]).as_secs_f64() * 1e3))
    }
}
