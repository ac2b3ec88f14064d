//! Whole networks on digits, the four kinds beside each other, pose estimation included.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use serde::Serialize;
use sren::models::{Architecture, SimResNetConfig};
use sren::{Equivariance, Similarity};
use sren_data::{Dataset, Split};

use super::layer::BATCH;
use super::timing::{least_in_turns, with_threads};
use crate::error::Result;
use crate::evaluation::plain_device;
use crate::training::{Optimiser, OptimiserKind};

/// One network of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkRow {
    /// Its name.
    pub network: String,
    /// What it follows: cnn, so2, scale or sren.
    pub model: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Images trained on a second: forward, backward, Adam.
    pub training_images_per_second: f64,
    /// Images told a second.
    pub inference_images_per_second: f64,
    /// Time of a training step, over that of the CNN kind.
    pub training_to_cnn: f64,
    /// Time of telling, over that of the CNN kind.
    pub inference_to_cnn: f64,
}

/// Measures `small` and `resnet18`, each also with relative-pose kernels, and ResNet-18 with all
/// positions computed.
pub fn networks(repetitions: usize, threads: usize) -> Result<Vec<NetworkRow>> {
    let mut rows = Vec::new();
    for arch in [Architecture::Small, Architecture::Resnet18] {
        let config = arch.config(1, 10);
        let mut variants: Vec<(String, SimResNetConfig)> = Equivariance::ALL
            .iter()
            .map(|kind| (arch.name().into(), config.clone().with_equivariance(*kind)))
            .collect();
        let relative = config.clone().with_relative_pose(true);
        variants.push((format!("{} relative pose", arch.name()), relative));
        let everywhere = config.with_active_only(false);
        variants.push((format!("{} all positions", arch.name()), everywhere));
        rows.extend(with_threads(threads, || variants_of(variants, repetitions, threads))??);
    }
    Ok(rows)
}

/// The first variant is the CNN.
fn variants_of(
    variants: Vec<(String, SimResNetConfig)>,
    repetitions: usize,
    threads: usize,
) -> Result<Vec<NetworkRow>> {
    let mut rows: Vec<NetworkRow> = Vec::new();
    let mut cnn = None;
    for (network, config) in variants {
        let times @ [training, inference] = measure(&config, repetitions)?;
        let [cnn_training, cnn_inference] = *cnn.get_or_insert(times);
        rows.push(NetworkRow {
            network,
            model: config.equivariance.name(),
            threads,
            training_images_per_second: 1e3 * BATCH as f64 / training,
            inference_images_per_second: 1e3 * BATCH as f64 / inference,
            training_to_cnn: training / cnn_training,
            inference_to_cnn: inference / cnn_inference,
        });
    }
    Ok(rows)
}

/// Milliseconds of a training step and of telling a batch of digits.
fn measure(config: &SimResNetConfig, repetitions: usize) -> Result<[f64; 2]> {
    let device = plain_device().autodiff();
    let indices: Vec<usize> = (0..BATCH).collect();
    let batch = Dataset::mnist(Split::Test)?.batch(&indices, |_| Ok(Similarity::IDENTITY))?;
    let data = TensorData::new(batch.images, batch.shape);
    let images = Tensor::<4>::from_data(data.clone(), &device);
    let network = config.init(&device)?;
    // Once, so that whatever does not fit is an error here and not in the middle of a measurement.
    network.forward(images.clone())?;
    let plain = network.valid();
    let plain_images = Tensor::<4>::from_data(data, &plain_device());
    let train = || {
        let mut optimiser = Optimiser::new(OptimiserKind::Adam { weight_decay: 0.01 });
        if let Ok(logits) = network.forward(images.clone()) {
            let gradients = logits.square().mean().backward();
            let gradients = GradientsParams::from_grads(gradients, &network);
            drop(optimiser.step(1e-3, network.clone(), gradients));
        }
    };
    let tell = || drop(plain.forward(plain_images.clone()));
    Ok(least_in_turns(repetitions, [&train, &tell]))
}
