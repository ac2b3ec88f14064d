//! Peak memory of a training step.

use std::fs;

use burn::tensor::{Device, Distribution, Tensor};
use serde::Serialize;
use sren::models::{Architecture, NetworkConfig};
use sren::{Grid, Result};

use super::layer::random_frames;
use crate::threads::with_threads;

/// Peak memory of a forward and backward pass of a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryProfile {
    /// The network.
    pub network: &'static str,
    /// Images in the batch.
    pub batch: usize,
    /// Height and width of the images.
    pub size: usize,
    /// Number of threads.
    pub threads: usize,
    /// The outputs of all layers, which the backward pass needs, in megabytes.
    pub activations_mb: f64,
    /// Rise of the process's resident memory at its peak, in megabytes.
    pub peak_mb: f64,
    /// `peak_mb / activations_mb`.
    pub peak_to_activations: f64,
}

/// Measures ResNet-18. `None` where the system has no `/proc` to read the peak from.
pub(super) fn resnet18(batch: usize, size: usize, threads: usize) -> Result<Option<MemoryProfile>> {
    let device = Device::flex().autodiff();
    let image = Grid::pixels(size, size);
    let config = Architecture::Resnet18.config(1, 10);
    let network = config.init(&device)?;
    let frames = random_frames(&network.grids(&image)?, batch)?;
    let pixels = Distribution::Uniform(0.0, 1.0);
    let images = Tensor::<4>::random([batch, size, size, 1], pixels, &device);
    let activations_mb = 4e-6 * activations(&config, size, batch)? as f64;
    let step = || -> Result<()> {
        let logits = network.forward_in(images, &frames)?;
        drop(logits.sum().backward());
        Ok(())
    };
    let (done, peak) = with_threads(threads, || peak_bytes(step))?;
    done?;
    Ok(peak.map(|bytes| {
        let peak_mb = 1e-6 * bytes as f64;
        MemoryProfile {
            network: "ResNet-18",
            batch,
            size,
            threads,
            activations_mb,
            peak_mb,
            peak_to_activations: peak_mb / activations_mb,
        }
    }))
}

/// Number of values that are stored for the backward pass of `batch` images: one output of every
/// convolution and one of every batch norm.
fn activations(config: &NetworkConfig, size: usize, batch: usize) -> Result<usize> {
    let geometry = config.geometry([size, size])?;
    let convolutions = geometry.layers().iter().filter(|layer| !layer.name.starts_with("head."));
    Ok(convolutions.map(|layer| 2 * batch * layer.output.iter().product::<usize>()).sum())
}

/// The result of `work`, and the greatest rise of the process's resident memory in bytes.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    // Writing 5 resets the high-water mark.
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = status_bytes("VmRSS:");
    let done = work();
    let peak = status_bytes("VmHWM:");
    let rise = before.zip(peak).map(|(before, peak)| peak.saturating_sub(before));
    (done, rise.filter(|_| reset))
}

fn status_bytes(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
