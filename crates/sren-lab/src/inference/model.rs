//! A trained model: that of a run's best epoch, or the one that comes with the program.

use std::path::Path;

use burn::tensor::Device;
use sren::Weights;
use sren::models::Network;

use crate::error::{LabError, Result};
use crate::training::{EpochMetrics, RunFolder, TrainingConfig, parse_metrics};

/// The name that stands for the network that comes with the program, instead of a run's folder.
pub const BUNDLED: &str = "mnist-sren";

const CONFIG: &str = include_str!("../../models/mnist-sren.toml");
const METRICS: &str = include_str!("../../models/mnist-sren.jsonl");
const WEIGHTS: &[u8] = include_bytes!("../../models/mnist-sren.safetensors");

/// The device of networks that do not train.
pub fn inference_device() -> Device {
    Device::flex()
}

/// A trained network and its training configuration.
///
/// ```
/// use std::path::Path;
/// use sren_lab::inference::{BUNDLED, Model};
///
/// let model = Model::open(Path::new(BUNDLED))?;
/// assert_eq!(model.config.classes().len(), 10);
/// # Ok::<(), sren_lab::LabError>(())
/// ```
#[derive(Debug)]
pub struct Model {
    /// The network, in inference mode.
    pub network: Network,
    /// How it was trained.
    pub config: TrainingConfig,
}

impl Model {
    /// The model of the best epoch of the run in `path`, or the [bundled](BUNDLED) one.
    pub fn open(path: &Path) -> Result<Self> {
        if is_bundled(path) {
            let config = TrainingConfig::parse(BUNDLED, CONFIG)?;
            let network = config.network()?.init(&inference_device())?;
            let weights = Weights::from_bytes(WEIGHTS).and_then(|weights| weights.apply(network));
            let network =
                weights.map_err(|e| LabError::invalid(BUNDLED, "weights", e.to_string()))?;
            return Ok(Self { network, config });
        }
        let (folder, config) = RunFolder::open(path)?;
        if config.classes().is_empty() {
            let name = path.join("config.toml").display().to_string();
            return Err(LabError::invalid(name, "the names of the classes", "none"));
        }
        let network = folder.load_model(config.network()?.init(&inference_device())?)?;
        Ok(Self { network, config })
    }

    /// The training configuration and the epochs so far of the run in `path`, or of the
    /// [bundled](BUNDLED) model.
    pub fn history(path: &Path) -> Result<(TrainingConfig, Vec<EpochMetrics>)> {
        if is_bundled(path) {
            let config = TrainingConfig::parse(BUNDLED, CONFIG)?;
            return Ok((config, parse_metrics(BUNDLED, METRICS)?));
        }
        let (folder, config) = RunFolder::open(path)?;
        Ok((config, folder.load_metrics()?))
    }
}

/// A folder of that name goes first.
fn is_bundled(path: &Path) -> bool {
    path == Path::new(BUNDLED) && !path.exists()
}
