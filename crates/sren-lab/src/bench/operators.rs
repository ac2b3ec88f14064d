//! The similarity convolution beside Burn's plain convolution, layer by layer.

use serde::Serialize;
use sren::Result;

use super::layer::{LAYERS, Layer};
use super::subject::{Contender, Pass, prepare, tap_table};
use super::timing::{least_in_turns, with_threads};

/// One layer, one pass, one number of threads. Times in milliseconds for a batch of
/// [`BATCH`](super::BATCH).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperatorRow {
    /// The layer.
    pub layer: Layer,
    /// What was computed.
    pub pass: Pass,
    /// Number of threads.
    pub threads: usize,
    /// Our kernel on slices.
    pub kernel_ms: f64,
    /// Our Burn module (under autodiff if there is a backward pass).
    pub module_ms: f64,
    /// Burn's plain convolution.
    pub burn_ms: f64,
    /// Building the tap table, which layers share.
    pub taps_ms: f64,
    /// How many times as long the kernel takes as Burn's plain convolution.
    pub kernel_to_burn: f64,
    /// How many times as long the module takes as Burn's plain convolution.
    pub module_to_burn: f64,
    /// Time of the tap table as a share of the kernel's.
    pub taps_share: f64,
    /// How many times as fast the kernel is as with one thread, where both were measured.
    pub speedup: Option<f64>,
}

/// Measures all layers with each number of threads.
pub fn operators(repetitions: usize, threads: &[usize]) -> Result<Vec<OperatorRow>> {
    let mut rows: Vec<OperatorRow> = Vec::new();
    for layer in &LAYERS {
        for pass in [Pass::Forward, Pass::ForwardBackward] {
            let alone = rows.len();
            for &threads in threads {
                let mut row =
                    with_threads(threads, || measure(layer, pass, threads, repetitions))??;
                let single = rows[alone..].iter().find(|row| row.threads == 1);
                row.speedup = single.map(|single| single.kernel_ms / row.kernel_ms);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

fn measure(layer: &Layer, pass: Pass, threads: usize, repetitions: usize) -> Result<OperatorRow> {
    let kernel = prepare(layer, Contender::Kernel, pass)?;
    let module = prepare(layer, Contender::Module, pass)?;
    let burn = prepare(layer, Contender::BurnConv2d, pass)?;
    let taps = tap_table(layer)?;
    let [kernel_ms, module_ms, burn_ms, taps_ms] =
        least_in_turns(repetitions, [&*kernel, &*module, &*burn, &*taps]);
    Ok(OperatorRow {
        layer: *layer,
        pass,
        threads,
        kernel_ms,
        module_ms,
        burn_ms,
        taps_ms,
        kernel_to_burn: kernel_ms / burn_ms,
        module_to_burn: module_ms / burn_ms,
        taps_share: taps_ms / kernel_ms,
        speedup: None,
    })
}
