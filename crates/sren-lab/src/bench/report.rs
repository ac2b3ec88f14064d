//! What was measured, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::block::BlockProfile;
use super::layer::BATCH;
use super::memory::MemoryProfile;
use super::network::NetworkRow;
use super::operators::OperatorRow;
use super::pose::PoseRow;
use super::subject::Pass;

/// All measurements of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Images in the batches of operators and block.
    pub batch: usize,
    /// Rounds of which the least time counts.
    pub repetitions: usize,
    /// Similarity convolution against Burn's plain convolution.
    pub operators: Vec<OperatorRow>,
    /// A residual block's training step.
    pub blocks: Vec<BlockProfile>,
    /// The pose estimator.
    pub pose: Vec<PoseRow>,
    /// Whole networks of the four kinds.
    pub networks: Vec<NetworkRow>,
    /// A whole network's memory, where it could be read.
    pub memory: Option<MemoryProfile>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "Similarity convolution against Burn's plain conv2d, batch {BATCH}, least of {}.\n\
             Ratios: how many times as long as conv2d takes; below 1 is faster.\n",
            self.repetitions
        )?;
        writeln!(
            f,
            "{:<13}{:<10}{:>8}{:>12}{:>9}{:>9}{:>8}{:>9}",
            "layer", "pass", "threads", "conv2d ms", "kernel", "module", "taps", "speed-up"
        )?;
        for row in &self.operators {
            let pass = match row.pass {
                Pass::Forward => "forward",
                Pass::ForwardBackward => "fwd + bwd",
            };
            let speedup = row.speedup.map_or(String::from("-"), |s| format!("{s:.2}"));
            writeln!(
                f,
                "{:<13}{:<10}{:>8}{:>12.2}{:>9.2}{:>9.2}{:>7.1}%{:>9}",
                row.layer.name,
                pass,
                row.threads,
                row.burn_ms,
                row.kernel_to_burn,
                row.module_to_burn,
                100.0 * row.taps_share,
                speedup,
            )?;
        }
        writeln!(
            f,
            "\ntaps: building the tap table, as a share of the kernel's time; layers share it.\n\
             speed-up: of the kernel, against one thread.\n\n\
             Training step of a residual block (forward, backward, Adam), batch {BATCH}.\n"
        )?;
        writeln!(
            f,
            "{:<13}{:>8}{:>10}{:>10}{:>12}{:>8}{:>8}",
            "block", "threads", "step ms", "SimConv", "batch norm", "Adam", "rest"
        )?;
        for block in &self.blocks {
            writeln!(
                f,
                "{:<13}{:>8}{:>10.1}{:>9.0}%{:>11.0}%{:>7.0}%{:>7.0}%",
                format!("{}ch {}x{}", block.channels, block.size, block.size),
                block.threads,
                block.step_ms,
                100.0 * block.simconv_share,
                100.0 * block.norm_share,
                100.0 * block.optimiser_share,
                100.0 * block.rest_share,
            )?;
        }
        writeln!(
            f,
            "\nPose estimation at every second pixel, batch {BATCH}; share: of a plain ResNet-18's\n\
             forward pass; growth: time a pixel against the smallest size.\n\n\
             {:<13}{:>8}{:>12}{:>8}{:>8}",
            "images", "threads", "images/s", "share", "growth"
        )?;
        for row in &self.pose {
            let share = row.share_of_resnet18.map_or("-".into(), |s| format!("{:.0}%", 100.0 * s));
            writeln!(
                f,
                "{:<13}{:>8}{:>12.0}{:>8}{:>8.2}",
                format!("{}x{}", row.size, row.size),
                row.threads,
                row.images_per_second,
                share,
                row.growth
            )?;
        }
        writeln!(
            f,
            "\nWhole networks on digits at 56x56, batch {BATCH}, poses estimated; ratios: time over that\n\
             of the CNN kind; shares of a training step: poses, forward, backward, Adam.\n\n\
             {:<24}{:<7}{:>8}{:>12}{:>7}{:>12}{:>7}  shares",
            "network", "model", "threads", "train im/s", "ratio", "infer im/s", "ratio"
        )?;
        for row in &self.networks {
            writeln!(
                f,
                "{:<24}{:<7}{:>8}{:>12.0}{:>7.2}{:>12.0}{:>7.2}  {}",
                row.network,
                row.model,
                row.threads,
                row.training_images_per_second,
                row.training_to_cnn,
                row.inference_images_per_second,
                row.inference_to_cnn,
                row.training_shares.map(|share| format!("{:.0}%", 100.0 * share)).join(" "),
            )?;
        }
        if let Some(memory) = &self.memory {
            write!(
                f,
                "\nPeak memory of {} forward + backward, batch {}, {}x{}: {:.0} MB,\n\
                 {:.2} times the layers' outputs ({:.0} MB).",
                memory.network,
                memory.batch,
                memory.size,
                memory.size,
                memory.peak_mb,
                memory.peak_to_activations,
                memory.activations_mb,
            )?;
        }
        Ok(())
    }
}
