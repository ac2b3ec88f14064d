//! A trained model: that of a run's best epoch, or one that comes with the program.

use std::path::Path;

use burn::tensor::Device;
use sren::Weights;
use sren::models::Network;

use crate::error::{LabError, Result};
use crate::training::{EpochMetrics, RunFolder, TrainingConfig, parse_metrics};

/// The name that stands for the network that comes with the program, instead of a run's folder.
pub const BUNDLED: &str = "mnist-sren";
/// The name of the plain CNN of the same shape, which comes with the program for comparison.
pub const BUNDLED_CNN: &str = "mnist-cnn";

/// A model that comes with the program.
struct Bundled {
    name: &'static str,
    config: &'static str,
    metrics: &'static str,
    weights: &'static [u8],
}

macro_rules! bundled {
    ($name:literal) => {
        Bundled {
            name: $name,
            config: include_str!(concat!("../../models/", $name, ".toml")),
            metrics: include_str!(concat!("../../models/", $name, ".jsonl")),
            weights: include_bytes!(concat!("../../models/", $name, ".safetensors")),
        }
    };
}

const MODELS: [Bundled; 2] = [bundled!("mnist-sren"), bundled!("mnist-cnn")];

impl Bundled {
    /// The one that `path` names. A folder of that name goes first.
    fn find(path: &Path) -> Option<&'static Self> {
        MODELS.iter().find(|model| path == Path::new(model.name) && !path.exists())
    }

    fn config(&self) -> Result<TrainingConfig> {
        TrainingConfig::parse(self.name, self.config)
    }
}

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
    /// The model of the best epoch of the run in `path`, or a bundled one: [`BUNDLED`] or
    /// [`BUNDLED_CNN`].
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(bundled) = Bundled::find(path) {
            let config = bundled.config()?;
            let network = config.network()?.init(&inference_device())?;
            let weights = Weights::from_bytes(bundled.weights).and_then(|w| w.apply(network));
            let network =
                weights.map_err(|e| LabError::invalid(bundled.name, "weights", e.to_string()))?;
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

    /// The training configuration and the epochs so far of the run in `path`, or of a bundled model.
    pub fn history(path: &Path) -> Result<(TrainingConfig, Vec<EpochMetrics>)> {
        if let Some(bundled) = Bundled::find(path) {
            return Ok((bundled.config()?, parse_metrics(bundled.name, bundled.metrics)?));
        }
        let (folder, config) = RunFolder::open(path)?;
        Ok((config, folder.load_metrics()?))
    }
}
