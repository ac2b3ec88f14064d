//! A trained network to use: that of a run's best epoch, or the one that comes with the program.

use std::path::Path;

use sren::Weights;
use sren::models::SimResNet;

use super::config::TrainingConfig;
use super::run_folder::{EpochMetrics, RunFolder, parse_metrics};
use crate::error::{LabError, Result};
use crate::evaluation::inference_device;

/// The name that stands for the network that comes with the program, instead of a run's folder.
pub const BUNDLED: &str = "mnist-sren";

const CONFIG: &str = include_str!("../../models/mnist-sren.toml");
const METRICS: &str = include_str!("../../models/mnist-sren.jsonl");
const WEIGHTS: &[u8] = include_bytes!("../../models/mnist-sren.safetensors");

/// A trained network, ready to evaluate, and how it was made.
#[derive(Debug)]
pub struct Trained {
    /// The network, which does not train.
    pub network: SimResNet,
    /// How it was trained.
    pub config: TrainingConfig,
}

impl Trained {
    /// The network of the best epoch of the run in `path`, or the [bundled](BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        if !is_bundled(path) {
            let (folder, config) = RunFolder::open(path)?;
            return Ok(Self { network: folder.load_network(&config)?, config });
        }
        let config = TrainingConfig::parse(BUNDLED, CONFIG)?;
        let network = config.network()?.init(&inference_device())?;
        let weights = Weights::from_bytes(WEIGHTS).and_then(|weights| weights.apply(network));
        let network = weights.map_err(|e| LabError::invalid(BUNDLED, "weights", e.to_string()))?;
        Ok(Self { network, config })
    }

    /// How the run in `path`, or the [bundled](BUNDLED) network, was and is being trained: its
    /// config and its epochs so far.
    pub fn history(path: &Path) -> Result<(TrainingConfig, Vec<EpochMetrics>)> {
        if is_bundled(path) {
            return Ok((TrainingConfig::parse(BUNDLED, CONFIG)?, parse_metrics(BUNDLED, METRICS)?));
        }
        let (folder, config) = RunFolder::open(path)?;
        Ok((config, folder.load_metrics()?))
    }
}

/// A folder of that name goes first.
fn is_bundled(path: &Path) -> bool {
    path == Path::new(BUNDLED) && !path.exists()
}
