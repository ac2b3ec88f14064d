//! Time shares of a residual block's training step.

use std::time::Instant;

use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor};
use serde::Serialize;
use sren::models::SimBlockConfig;
use sren::{FeatureMap, Grid, Mask, Result};

use super::layer::{BATCH, random_frames};
use crate::threads::with_threads;

/// Shares of a training step of one block (forward, backward, Adam), batch of
/// [`BATCH`](super::BATCH).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockProfile {
    /// Channels of the block.
    pub channels: usize,
    /// Height and width of its input.
    pub size: usize,
    /// Number of threads.
    pub threads: usize,
    /// The whole step in milliseconds.
    pub step_ms: f64,
    /// Share of the two similarity convolutions, forward and backward.
    pub simconv_share: f64,
    /// Share of the two batch norms with ReLU and residual, forward and backward.
    pub norm_share: f64,
    /// Share of the optimiser's step.
    pub optimiser_share: f64,
    /// The remainder: adding gradients of the two branches, bookkeeping.
    pub rest_share: f64,
}

/// Profiles a block of `channels` channels on `size x size` positions.
pub fn profile(
    channels: usize,
    size: usize,
    threads: usize,
    repetitions: usize,
) -> Result<BlockProfile> {
    with_threads(threads, || measure(channels, size, threads, repetitions))?
}

fn measure(
    channels: usize,
    size: usize,
    threads: usize,
    repetitions: usize,
) -> Result<BlockProfile> {
    let device = Device::flex().autodiff();
    let grid = Grid::pixels(size, size);
    let frames = random_frames(&[grid], BATCH)?;
    let block = SimBlockConfig::new([channels; 2]).init(&device)?;
    let taps = block.conv1.taps(&frames, &grid)?;
    let noise = || {
        let normal = burn::tensor::Distribution::Normal(0.0, 1.0);
        Tensor::<4>::random([BATCH, size, size, channels], normal, &device).require_grad()
    };
    let (x, residual) = (noise(), noise());
    let mut adam = AdamConfig::new().init();
    let mut trained = SimBlockConfig::new([channels; 2]).init(&device)?;
    let mut least = [f64::INFINITY; 5];
    for repetition in 0..=repetitions {
        let start = Instant::now();
        let gradients =
            trained.forward(FeatureMap { values: x.clone(), grid }, &frames)?.values.backward();
        let gradients = GradientsParams::from_grads(gradients, &trained);
        let optimiser = Instant::now();
        trained = adam.step(1e-3, trained, gradients);
        let optimiser = optimiser.elapsed();
        let step = start.elapsed();

        let start = Instant::now();
        drop(block.conv1.convolve(x.clone(), &taps)?.backward());
        let simconv = start.elapsed();
        let start = Instant::now();
        drop(block.norm1.forward(x.clone(), &Mask::default())?.backward());
        let norm = start.elapsed();
        let start = Instant::now();
        drop(
            block.norm2.forward_residual(x.clone(), residual.clone(), &Mask::default())?.backward(),
        );
        let residual = start.elapsed();
        // The first round is a warm-up.
        if repetition > 0 {
            let spent = [step, simconv, norm, residual, optimiser];
            for (least, spent) in least.iter_mut().zip(spent) {
                *least = least.min(spent.as_secs_f64() * 1e3);
            }
        }
    }
    let [step_ms, simconv_ms, norm_ms, residual_ms, optimiser_ms] = least;
    let share = |ms: f64| ms / step_ms;
    let (simconv_share, norm_share) = (share(2.0 * simconv_ms), share(norm_ms + residual_ms));
    let optimiser_share = share(optimiser_ms);
    Ok(BlockProfile {
        channels,
        size,
        threads,
        step_ms,
        simconv_share,
        norm_share,
        optimiser_share,
        rest_share: 1.0 - simconv_share - norm_share - optimiser_share,
    })
}
