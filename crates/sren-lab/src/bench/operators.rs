//! The similarity convolution beside Burn's plain convolution, layer by layer.

use rayon::ThreadPool;
use serde::Serialize;
use sren::Result;

use super::layer::{LAYERS, Layer};
use super::subject::{Contender, Pass, prepare, tap_table};
use super::timing::minimum_interleaved;
use crate::threads::pool;

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
    /// Time of the kernel over that of Burn's plain convolution.
    pub kernel_to_burn: f64,
    /// Time of the module over that of Burn's plain convolution.
    pub module_to_burn: f64,
    /// Time of the tap table over that of the kernel.
    pub taps_share: f64,
    /// Speed of the kernel over that with one thread, where both were measured.
    pub speedup: Option<f64>,
}

/// Measures all layers with each number of threads.
pub fn operators(repetitions: usize, threads: &[usize]) -> Result<Vec<OperatorRow>> {
    let pools = threads.iter().map(|&threads| pool(threads)).collect::<Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for layer in &LAYERS {
        for pass in [Pass::Forward, Pass::ForwardBackward] {
            rows.extend(measure(layer, pass, &pools, repetitions)?);
        }
    }
    Ok(rows)
}

/// A row per pool. The pools are interleaved as well, so that both sides of the speed-up are
/// measured under the same load.
fn measure(
    layer: &Layer,
    pass: Pass,
    pools: &[ThreadPool],
    repetitions: usize,
) -> Result<Vec<OperatorRow>> {
    const CONTENDERS: usize = 4;
    let subjects: [_; CONTENDERS] = [
        prepare(layer, Contender::Kernel, pass)?,
        prepare(layer, Contender::Module, pass)?,
        prepare(layer, Contender::BurnConv2d, pass)?,
        tap_table(layer)?,
    ];
    let mut on_pools: Vec<Box<dyn Fn() + Send + Sync + '_>> = Vec::new();
    for pool in pools {
        for subject in &subjects {
            on_pools.push(Box::new(move || pool.install(subject)));
        }
    }
    let on_pools: Vec<_> = on_pools.iter().map(|subject| &**subject).collect();
    let times = minimum_interleaved(repetitions, &on_pools);
    let (times, _) = times.as_chunks::<CONTENDERS>();
    let single = pools.iter().position(|pool| pool.current_num_threads() == 1);
    let row = |(pool, own): (&ThreadPool, &[f64; CONTENDERS])| {
        let [kernel_ms, module_ms, burn_ms, taps_ms] = *own;
        OperatorRow {
            layer: *layer,
            pass,
            threads: pool.current_num_threads(),
            kernel_ms,
            module_ms,
            burn_ms,
            taps_ms,
            kernel_to_burn: kernel_ms / burn_ms,
            module_to_burn: module_ms / burn_ms,
            taps_share: taps_ms / kernel_ms,
            speedup: single.map(|single| times[single][0] / kernel_ms),
        }
    };
    Ok(pools.iter().zip(times).map(row).collect())
}
