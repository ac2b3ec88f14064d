//! The files of a run, each written atomically:
//!
//! ```text
//! config.toml                    the config, the network in full
//! metrics.jsonl                  one line per epoch
//! model.safetensors              the weights of the best epoch
//! checkpoint/state.safetensors   the weights and the optimiser where the run stopped
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sren::models::{Network, current_name};
use sren::{Precision, Weights};
use sren_data::read_bounded;

use super::config::TrainingConfig;
use super::optimiser::{Optimiser, OptimiserKind};
use crate::artifact::atomic_write;
use crate::error::{LabError, Result};

/// Most bytes of weights: those of the largest network, with its optimiser,
const MAX_WEIGHTS: u64 = 2 << 30;
/// and of metrics.
const MAX_METRICS: u64 = 1 << 28;

/// One epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// Its number, from 1.
    pub epoch: usize,
    /// Mean loss over the training images, as they were trained on.
    pub loss: f64,
    /// Accuracy over the same, in per cent.
    pub accuracy: f64,
    /// Accuracy on the validation images afterwards, in per cent.
    pub validation_accuracy: f64,
    /// Learning rate at its end.
    pub learning_rate: f64,
    /// Images trained on per second.
    pub images_per_second: f64,
}

/// Where a run stopped. Sums and counts are those of the epoch that is under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The network's weights.
    pub weights: Weights,
    /// The optimiser with its state.
    pub optimiser: Optimiser,
    /// Epochs done.
    pub epoch: usize,
    /// Steps done of the epoch under way.
    pub step: usize,
    /// Sum of the losses of these steps.
    pub loss: f64,
    /// Images classified correctly in these steps.
    pub right: usize,
}

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Starts a run in `path`, which must not hold one yet.
    pub fn create(path: &Path, config: &TrainingConfig) -> Result<Self> {
        let folder = Self { path: path.to_path_buf() };
        if folder.file("config.toml").exists() {
            let name = path.display().to_string();
            return Err(LabError::invalid(name, "a folder without a run", "one (see --resume)"));
        }
        let checkpoints = folder.file("checkpoint");
        fs::create_dir_all(&checkpoints)
            .map_err(|source| LabError::Write { path: checkpoints, source })?;
        atomic_write(&folder.file("config.toml"), config.to_toml()?.as_bytes())?;
        Ok(folder)
    }

    /// The run in `path`, with its config.
    pub fn open(path: &Path) -> Result<(Self, TrainingConfig)> {
        let folder = Self { path: path.to_path_buf() };
        let config = folder.file("config.toml");
        if !config.exists() {
            let got = if path.exists() { "one without config.toml" } else { "nothing there" };
            return Err(LabError::invalid(path.display().to_string(), "the folder of a run", got));
        }
        check_is_file(&config)?;
        let config = TrainingConfig::read(&config)?;
        Ok((folder, config))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Saves the weights of the best epoch.
    pub fn save_model(&self, weights: &Weights) -> Result<()> {
        atomic_write(&self.file("model.safetensors"), &weights.to_bytes(Precision::Single)?)
    }

    /// `network` with the weights of the best epoch.
    pub fn load_model(&self, network: Network) -> Result<Network> {
        let path = self.file("model.safetensors");
        let mut weights = read_weights(&path)?;
        use_current_names(&mut weights);
        let bad = |(_, (_, values)): &(&String, &(Vec<usize>, Vec<f32>))| {
            values.iter().any(|value| !value.is_finite())
        };
        if let Some((name, _)) = weights.tensors.iter().find(bad) {
            return Err(unreadable(&path, format!("values of {name} that are no numbers")));
        }
        weights.apply(network).map_err(|e| unreadable(&path, e))
    }

    /// Saves the metrics of all epochs so far.
    pub fn save_metrics(&self, metrics: &[EpochMetrics]) -> Result<()> {
        let mut text = String::new();
        for epoch in metrics {
            let line = serde_json::to_string(epoch)
                .map_err(|e| LabError::invalid("metrics", "JSON", e.to_string()))?;
            text.push_str(&line);
            text.push('\n');
        }
        atomic_write(&self.file("metrics.jsonl"), text.as_bytes())
    }

    /// The metrics of all epochs so far; none before the first ends.
    pub fn load_metrics(&self) -> Result<Vec<EpochMetrics>> {
        let path = self.file("metrics.jsonl");
        if !path.exists() {
            return Ok(Vec::new());
        }
        check_is_file(&path)?;
        let bytes = read_bounded(&path, MAX_METRICS).map_err(|e| unreadable(&path, e))?;
        let text = String::from_utf8(bytes).map_err(|e| unreadable(&path, e))?;
        parse_metrics(&path.display().to_string(), &text)
    }

    /// Saves where the run stands.
    pub fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<()> {
        let mut file = Weights::default();
        for (name, tensor) in &checkpoint.weights.tensors {
            file.tensors.insert(format!("network.{name}"), tensor.clone());
        }
        checkpoint.optimiser.save(&mut file);
        let sum = checksum(&file);
        for (key, value) in [
            ("epoch", checkpoint.epoch.to_string()),
            ("step", checkpoint.step.to_string()),
            // As bits: decimal digits might round.
            ("loss", checkpoint.loss.to_bits().to_string()),
            ("right", checkpoint.right.to_string()),
            ("checksum", sum.to_string()),
        ] {
            file.metadata.insert(key.into(), value);
        }
        atomic_write(&self.file("checkpoint/state.safetensors"), &file.to_bytes(Precision::Single)?)
    }

    /// Where the run stopped.
    pub fn load_checkpoint(&self, kind: OptimiserKind) -> Result<Checkpoint> {
        let path = self.file("checkpoint/state.safetensors");
        let mut file = read_weights(&path)?;
        let sum = checksum(&file);
        let number = |file: &Weights, key: &str| -> Result<u64> {
            let found = file.metadata.get(key).and_then(|value| value.parse().ok());
            found.ok_or_else(|| unreadable(&path, format!("no number {key} in it")))
        };
        if number(&file, "checksum")? != u64::from(sum) {
            return Err(unreadable(&path, "values that do not fit their checksum"));
        }
        use_current_names(&mut file);
        let optimiser = Optimiser::load(kind, &mut file)
            .ok_or_else(|| unreadable(&path, "no state of the optimiser in it"))?;
        let mut weights = Weights::default();
        for (name, tensor) in std::mem::take(&mut file.tensors) {
            if let Some(name) = name.strip_prefix("network.") {
                weights.tensors.insert(name.into(), tensor);
            }
        }
        Ok(Checkpoint {
            weights,
            optimiser,
            epoch: number(&file, "epoch")? as usize,
            step: number(&file, "step")? as usize,
            loss: f64::from_bits(number(&file, "loss")?),
            right: number(&file, "right")? as usize,
        })
    }
}

/// The metrics of all epochs, a line each. `name` is used in errors.
pub(crate) fn parse_metrics(name: &str, text: &str) -> Result<Vec<EpochMetrics>> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().map_err(|e| {
        LabError::invalid(name, "a whole file of this run", e.to_string().replace('\n', " "))
    })
}

fn read_weights(path: &Path) -> Result<Weights> {
    check_is_file(path)?;
    let bytes = read_bounded(path, MAX_WEIGHTS).map_err(|e| unreadable(path, e))?;
    Weights::from_bytes(&bytes).map_err(|e| unreadable(path, e))
}

/// Renames the weights of a file of version 0.1.0. In a checkpoint their names have a prefix.
fn use_current_names(file: &mut Weights) {
    const PREFIXES: [&str; 3] = ["network.", "optimiser0.", "optimiser1."];
    let split = |name: &str| {
        let prefix = PREFIXES.into_iter().find(|prefix| name.starts_with(prefix)).unwrap_or("");
        (prefix, name[prefix.len()..].to_string())
    };
    let all: Vec<String> = file.tensors.keys().map(|name| split(name).1).collect();
    if all.iter().any(|name| name.contains("backbone.")) {
        return;
    }
    let tensors = std::mem::take(&mut file.tensors).into_iter();
    let renamed = tensors.map(|(name, tensor)| {
        let (prefix, name) = split(&name);
        (format!("{prefix}{}", current_name(&name, all.iter().map(String::as_str))), tensor)
    });
    file.tensors = renamed.collect();
}

/// Reading from what is there but is no file might wait for ever.
fn check_is_file(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_file() => Err(unreadable(path, "no file")),
        _ => Ok(()),
    }
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> LabError {
    let why = why.to_string().replace('\n', " ");
    LabError::invalid(path.display().to_string(), "a whole file of this run", why)
}

/// CRC-32 of all values.
fn checksum(weights: &Weights) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for (_, values) in weights.tensors.values() {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize()
}
