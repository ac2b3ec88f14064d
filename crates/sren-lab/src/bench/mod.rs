//! Speed and memory: the similarity convolution beside Burn's plain convolution in the same run, a
//! residual block's training step, the pose estimator, whole networks of all four equivariance
//! groups, peak memory. Ratios, since these carry over to other machines.

mod block;
mod layer;
mod memory;
mod network;
mod operators;
mod pose;
mod report;
mod subject;
mod timing;

pub use block::{BlockProfile, profile};
pub use layer::{BATCH, LAYERS, Layer, random_frames};
pub use memory::{MemoryProfile, peak_bytes};
pub use network::{NetworkRow, TrainingStep, networks};
pub use operators::{OperatorRow, operators};
pub use pose::{PoseRow, pose};
pub use report::Report;
pub use subject::{Contender, Pass, Subject, prepare, tap_table};
pub use timing::{minimum_interleaved, once};

use crate::error::Result;
use crate::progress::Task;

/// What to measure and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Rounds of which the minimum time is taken.
    pub repetitions: usize,
    /// Numbers of threads to measure with.
    pub threads: Vec<usize>,
    /// Batch and image size of the network whose peak memory is measured, if any.
    pub memory: Option<(usize, usize)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { repetitions: 10, threads: vec![1, 2], memory: Some((128, 56)) }
    }
}

/// Channels and sizes of the blocks whose training step is profiled.
const BLOCKS: [(usize, usize); 2] = [(64, 28), (256, 7)];

/// Measures everything.
pub fn run(options: &Options) -> Result<Report> {
    let repetitions = options.repetitions.max(1);
    let task = Task::new("benchmarking", 5);
    // Memory first, while the process is small.
    let most = options.threads.iter().copied().max().unwrap_or(1);
    let memory = match options.memory {
        Some((batch, size)) => memory::resnet18(batch, size, most)?,
        None => None,
    };
    task.advance(1);
    let operators = operators(repetitions, &options.threads)?;
    task.advance(1);
    let mut blocks = Vec::new();
    for (channels, size) in BLOCKS {
        for &threads in &options.threads {
            blocks.push(profile(channels, size, threads, repetitions)?);
        }
    }
    task.advance(1);
    let pose = pose(repetitions, &options.threads)?;
    task.advance(1);
    let networks = networks(repetitions, most)?;
    Ok(Report { batch: BATCH, repetitions, operators, blocks, pose, networks, memory })
}
