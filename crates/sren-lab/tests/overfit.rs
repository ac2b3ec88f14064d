//! Every architecture learns with every equivariance group: it overfits 64 digits.

use burn::optim::GradientsParams;
use burn::tensor::{Int, Tensor, TensorData};
use sren::models::{Architecture, TrainingBatch, TrainingLoss};
use sren::{Equivariance, Similarity};
use sren_data::{Dataset, Split};
use sren_lab::inference::inference_device;
use sren_lab::training::{Optimiser, OptimiserKind};

const DIGITS: usize = 64;
/// Most steps.
const STEPS: usize = 24;
/// Steps until the learning rate is reached.
const WARMUP: usize = 10;
/// Digits that must be recognised: chance is 6.
const LEARNED: usize = 48;

fn overfits(arch: Architecture, group: Equivariance) {
    let device = inference_device().autodiff();
    device.seed(1);
    let indices: Vec<usize> = (0..DIGITS).collect();
    let digits = Dataset::mnist(Split::Train).unwrap().on_canvas(28, 28).unwrap();
    let batch = digits.batch(&indices, |_| Ok(Similarity::IDENTITY)).unwrap();
    let images = Tensor::<4>::from_data(TensorData::new(batch.images, batch.shape), &device);
    let labels: Vec<i32> = batch.labels.iter().map(|label| *label as i32).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(labels, [DIGITS]), &device);
    let transforms = vec![Similarity::IDENTITY; DIGITS];

    let mut network = arch.config_for(group, 1, 10).init(&device).unwrap();
    let mut optimiser = Optimiser::new(OptimiserKind::Adam { weight_decay: 0.0 });
    let fields = network.pose_fields(&images).unwrap();
    let mut losses = Vec::new();
    for step in 1..=STEPS {
        let frames = network.frames_of(fields.clone()).unwrap();
        let (images, targets) = (images.clone(), targets.clone());
        let batch = TrainingBatch { images, targets, transforms: transforms.clone() };
        let TrainingLoss { loss, correct } = network.loss(batch, &frames, None).unwrap();
        losses.push(loss.clone().into_scalar::<f32>());
        if correct >= LEARNED && losses[losses.len() - 1] < 0.6 * losses[0] {
            return;
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        let rate = 0.003 * (step as f64 / WARMUP as f64).min(1.0);
        network = optimiser.step(rate, network, gradients).unwrap();
    }
    panic!("{} {} does not learn {DIGITS} digits: {losses:?}", arch.name(), group.name());
}

fn overfits_with_every_group(arch: Architecture) {
    Equivariance::ALL.into_iter().for_each(|group| overfits(arch, group));
}

#[test]
fn patch_encoders_learn() {
    overfits_with_every_group(Architecture::Small);
    overfits_with_every_group(Architecture::Wide);
}

#[test]
fn blocks_learn() {
    overfits_with_every_group(Architecture::Blocks);
}

#[test]
fn photos_learns() {
    overfits_with_every_group(Architecture::Photos);
}

#[test]
fn resnet18_learns() {
    overfits_with_every_group(Architecture::Resnet18);
}

#[test]
fn resnet16_learns() {
    overfits_with_every_group(Architecture::Resnet16);
}

#[test]
fn wrn16_8_learns() {
    overfits_with_every_group(Architecture::Wrn16_8);
}
