//! All measurements, as a text and for JSON.

use std::fmt;

use serde::Serialize;

use super::block::BlockProfile;
use super::layer::BATCH;
use super::memory::MemoryProfile;
use super::network::NetworkRow;
use super::operators::OperatorRow;
use super::pose::PoseRow;
use super::subject::Pass;
use crate::text_table::TextTable;

/// All measurements of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Images in the batches of operators and block.
    pub batch: usize,
    /// Rounds of which the minimum time is taken.
    pub repetitions: usize,
    /// Similarity convolution against Burn's plain convolution.
    pub operators: Vec<OperatorRow>,
    /// A residual block's training step.
    pub blocks: Vec<BlockProfile>,
    /// The pose estimator.
    pub pose: Vec<PoseRow>,
    /// Whole networks of the four equivariance groups.
    pub networks: Vec<NetworkRow>,
    /// A whole network's memory, where it could be read.
    pub memory: Option<MemoryProfile>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "Similarity convolution against Burn's plain conv2d, batch {BATCH}, minimum of {} rounds.\n\
             Ratios: time over that of conv2d; below 1 is faster.\n\n{}\n\n\
             taps: time of the tap table over that of the kernel; layers share the table.\n\
             speed-up: of the kernel, over one thread.\n",
            self.repetitions,
            operators(&self.operators)
        )?;
        writeln!(
            f,
            "Training step of a residual block (forward, backward, Adam), batch {BATCH}.\n\n{}\n",
            blocks(&self.blocks)
        )?;
        writeln!(
            f,
            "Pose estimation at every second pixel, batch {BATCH}; share: of a plain ResNet-18's\n\
             forward pass; growth: time per pixel over that of the smallest size.\n\n{}\n",
            pose(&self.pose)
        )?;
        writeln!(
            f,
            "Whole networks on digits at 56x56, batch {BATCH}, with pose estimation; ratios: time\n\
             over that of the CNN; shares of a training step: poses, forward, backward, Adam.\n\n{}",
            networks(&self.networks)
        )?;
        if let Some(memory) = &self.memory {
            let MemoryProfile { network, batch, size, activations_mb, peak_mb, .. } = memory;
            write!(
                f,
                "\nPeak memory of {network} forward + backward, batch {batch}, {size}x{size}: \
                 {peak_mb:.0} MB,\n{:.2} times the layers' outputs ({activations_mb:.0} MB).",
                memory.peak_to_activations,
            )?;
        }
        Ok(())
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn operators(rows: &[OperatorRow]) -> TextTable {
    let head = ["layer", "pass", "threads", "conv2d ms", "kernel", "module", "taps", "speed-up"];
    let mut table = TextTable::new(head).left(1);
    for row in rows {
        let pass = match row.pass {
            Pass::Forward => "forward",
            Pass::ForwardBackward => "fwd + bwd",
        };
        table.row([
            row.layer.name.to_string(),
            pass.to_string(),
            row.threads.to_string(),
            format!("{:.2}", row.burn_ms),
            format!("{:.2}", row.kernel_to_burn),
            format!("{:.2}", row.module_to_burn),
            format!("{:.1} %", 100.0 * row.taps_share),
            row.speedup.map_or("-".into(), |speedup| format!("{speedup:.2}")),
        ]);
    }
    table
}

fn blocks(rows: &[BlockProfile]) -> TextTable {
    let head = ["block", "threads", "step ms", "SimConv", "batch norm", "Adam", "rest"];
    let mut table = TextTable::new(head);
    for row in rows {
        table.row([
            format!("{}ch {}x{}", row.channels, row.size, row.size),
            row.threads.to_string(),
            format!("{:.1}", row.step_ms),
            percent(row.simconv_share),
            percent(row.norm_share),
            percent(row.optimiser_share),
            percent(row.rest_share),
        ]);
    }
    table
}

fn pose(rows: &[PoseRow]) -> TextTable {
    let mut table = TextTable::new(["images", "threads", "images/s", "share", "growth"]);
    for row in rows {
        table.row([
            format!("{}x{}", row.size, row.size),
            row.threads.to_string(),
            format!("{:.0}", row.images_per_second),
            row.share_of_resnet18.map_or("-".into(), percent),
            format!("{:.2}", row.growth),
        ]);
    }
    table
}

fn networks(rows: &[NetworkRow]) -> TextTable {
    let head =
        ["network", "model", "threads", "train im/s", "ratio", "infer im/s", "ratio", "shares"];
    let mut table = TextTable::new(head).left(1).left(7);
    for row in rows {
        table.row([
            row.network.clone(),
            row.model.to_string(),
            row.threads.to_string(),
            format!("{:.0}", row.training_images_per_second),
            format!("{:.2}", row.training_to_cnn),
            format!("{:.0}", row.inference_images_per_second),
            format!("{:.2}", row.inference_to_cnn),
            row.training_shares.map(|share| format!("{:.0}%", 100.0 * share)).join(" "),
        ]);
    }
    table
}
