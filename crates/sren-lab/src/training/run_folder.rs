//! The files of a run, each written atomically:
//!
//! ```text
//! config.toml                    the config, the network in full
//! metrics.jsonl                  one line per epoch
//! model.safetensors              the weights of the best epoch
//! checkpoint/state.safetensors   the weights and the optimiser where the run stopped
//! images.csv                     the files it learns from: checksum, length, name
//! lock                           locked while it trains
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sren::models::{Network, current_name};
use sren::{Precision, Weights};
use sren_data::{Loaded, Manifest, read_bounded};

use super::checksum;
use super::config::TrainingConfig;
use super::optimiser::{Optimiser, OptimiserKind};
use super::run_lock::{LOCK_FILE, RunLock};
use crate::artifact::atomic_write;
use crate::error::{LabError, Result};
use crate::evaluation::Accuracy;

/// Most bytes of weights: those of the largest network, with its optimiser,
const MAX_WEIGHTS: u64 = 2 << 30;
/// and of metrics or a list of images.
const MAX_TEXT: u64 = 1 << 28;
/// What a new run may find in its folder: left by one that ended before it wrote its config.
const LEFT_OVER: [&str; 3] = [LOCK_FILE, "checkpoint", "images.csv"];

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
    /// Threads that computed them; 0 if that is unknown.
    pub threads: usize,
}

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    lock: Option<Arc<RunLock>>,
}

impl RunFolder {
    /// Starts a run in `path`, a new or empty folder, and locks it.
    pub fn create(path: &Path, config: &TrainingConfig) -> Result<Self> {
        let mut folder = Self { path: path.to_path_buf(), lock: None };
        let name = path.display().to_string();
        if folder.file("config.toml").exists() {
            return Err(LabError::invalid(name, "a folder without a run", "one (see --resume)"));
        }
        let is_foreign = |entry: &fs::DirEntry| {
            !LEFT_OVER.iter().any(|known| entry.file_name().to_str() == Some(known))
        };
        if let Ok(entries) = fs::read_dir(path)
            && let Some(foreign) = entries.flatten().find(is_foreign)
        {
            let got = format!("one with {}", foreign.file_name().to_string_lossy());
            return Err(LabError::invalid(name, "a new or empty folder", got));
        }
        let checkpoints = folder.file("checkpoint");
        fs::create_dir_all(&checkpoints)
            .map_err(|source| LabError::Write { path: checkpoints, source })?;
        folder.lock()?;
        folder.save_config(config)?;
        Ok(folder)
    }

    /// Locks the folder for this process, until the last copy of `self` is dropped. Returns an error
    /// that names the process if another one trains in it.
    pub fn lock(&mut self) -> Result<()> {
        if self.lock.is_none() {
            self.lock = Some(Arc::new(RunLock::acquire(&self.path)?));
        }
        Ok(())
    }

    /// Saves the config.
    pub(super) fn save_config(&self, config: &TrainingConfig) -> Result<()> {
        atomic_write(&self.file("config.toml"), config.to_toml()?.as_bytes())
    }

    /// Makes `config` one of `epochs` epochs. Returns an error if more are done.
    pub(super) fn set_epochs(&self, config: &mut TrainingConfig, epochs: usize) -> Result<()> {
        let metrics = self.load_metrics()?;
        let done = metrics.len();
        if epochs < done {
            let expected = format!("at least the {done} epochs that are done");
            let name = self.path.display().to_string();
            return Err(LabError::invalid(name, expected, epochs.to_string()));
        }
        if epochs > config.epochs || out_of_patience(config, &metrics) {
            config.extended_from = done;
        }
        config.epochs = epochs;
        config.check(&self.path.display().to_string())
    }

    /// The run in `path`, with its config.
    pub fn open(path: &Path) -> Result<(Self, TrainingConfig)> {
        let folder = Self { path: path.to_path_buf(), lock: None };
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
        let mut file = weights.clone();
        checksum::seal(&mut file);
        atomic_write(&self.file("model.safetensors"), &file.to_bytes(Precision::Single)?)
    }

    /// Saves the list of the files that the run learns from.
    pub fn save_manifest(&self, manifest: &Manifest) -> Result<()> {
        if manifest.is_empty() {
            return Ok(());
        }
        atomic_write(&self.file("images.csv"), manifest.to_string().as_bytes())
    }

    /// Returns an error if the training images are not those that the run began with.
    pub fn check_images(&self, config: &TrainingConfig, found: &Loaded) -> Result<()> {
        let name = config.source().to_string();
        let path = self.file("images.csv");
        if path.exists() {
            check_is_file(&path)?;
            let bytes = read_bounded(&path, MAX_TEXT).map_err(|e| unreadable(&path, e))?;
            let text = String::from_utf8(bytes).map_err(|e| unreadable(&path, e))?;
            let manifest = Manifest::parse(&path.display().to_string(), &text)?;
            if let Some(changes) = manifest.changes(&found.manifest) {
                return Err(LabError::invalid(name, "the training images of the run", changes));
            }
        }
        let images = config.image_folder.as_ref().map_or(0, |folder| folder.images);
        if images != 0 && found.images.len() != images {
            let expected = format!("the {images} training images of the run");
            return Err(LabError::invalid(name, expected, found.images.len().to_string()));
        }
        Ok(())
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
        let bytes = read_bounded(&path, MAX_TEXT).map_err(|e| unreadable(&path, e))?;
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
        for (key, value) in [
            ("epoch", checkpoint.epoch.to_string()),
            ("step", checkpoint.step.to_string()),
            // As bits: decimal digits might round.
            ("loss", checkpoint.loss.to_bits().to_string()),
            ("right", checkpoint.right.to_string()),
            ("threads", checkpoint.threads.to_string()),
        ] {
            file.metadata.insert(key.into(), value);
        }
        checksum::seal(&mut file);
        atomic_write(&self.file("checkpoint/state.safetensors"), &file.to_bytes(Precision::Single)?)
    }

    /// Where the run stopped.
    pub fn load_checkpoint(&self, kind: OptimiserKind) -> Result<Checkpoint> {
        let path = self.file("checkpoint/state.safetensors");
        let mut file = read_weights(&path)?;
        let number = |file: &Weights, key: &str| -> Result<u64> {
            let found = file.metadata.get(key).and_then(|value| value.parse().ok());
            found.ok_or_else(|| unreadable(&path, format!("no number {key} in it")))
        };
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
            threads: number(&file, "threads").unwrap_or(0) as usize,
        })
    }
}

/// Whether the run ends before its last epoch, because validation has not become better for long.
pub(super) fn out_of_patience(config: &TrainingConfig, metrics: &[EpochMetrics]) -> bool {
    let accuracies = metrics.iter().map(|m| m.validation_accuracy);
    let best = accuracies.enumerate().fold((0, -1.0), |best, (epoch, value)| {
        if value > best.1 { (epoch + 1, value) } else { best }
    });
    let since = best.0.max(config.extended_from);
    config.patience > 0 && metrics.len() >= since + config.patience
}

/// The epoch whose weights a run keeps: of those that were, when they ended, as good as the best but
/// for the standard error of `images` validation images the last, for it has learned longest.
pub fn kept_epoch(metrics: &[EpochMetrics], images: usize) -> Option<&EpochMetrics> {
    let (mut best, mut kept) = (-1.0f64, None);
    for epoch in metrics {
        let accuracy = Accuracy { accuracy: epoch.validation_accuracy, n: images };
        if accuracy.accuracy + accuracy.standard_error() >= best {
            kept = Some(epoch);
        }
        best = best.max(epoch.validation_accuracy);
    }
    kept
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
    let weights = Weights::from_bytes(&bytes).map_err(|e| unreadable(path, e))?;
    checksum::verify(&path.display().to_string(), &weights)?;
    Ok(weights)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::Preset;

    fn metrics(accuracies: &[f64]) -> Vec<EpochMetrics> {
        let epoch = |(at, accuracy): (usize, &f64)| EpochMetrics {
            epoch: at + 1,
            loss: 1.0,
            accuracy: 50.0,
            validation_accuracy: *accuracy,
            learning_rate: 0.1,
            images_per_second: 1.0,
        };
        accuracies.iter().enumerate().map(epoch).collect()
    }

    #[test]
    fn the_last_epoch_that_is_as_good_as_the_best_is_kept() {
        let kept = |accuracies: &[f64]| kept_epoch(&metrics(accuracies), 100).map(|m| m.epoch);
        assert_eq!(kept(&[]), None);
        assert_eq!(kept(&[80.0, 90.0, 85.0]), Some(2));
        // The standard error of 88 % of 100 images is 3.2.
        assert_eq!(kept(&[80.0, 90.0, 88.0]), Some(3));
        assert_eq!(kept(&[80.0, 90.0, 88.0, 84.0]), Some(3));
    }

    #[test]
    fn patience_ends_a_run_and_begins_again_where_it_is_extended() {
        let mut config = Preset::Quick.config().unwrap();
        let metrics = metrics(&[80.0, 90.0, 85.0, 86.0]);
        assert!(!out_of_patience(&config, &metrics));
        config.patience = 2;
        assert!(out_of_patience(&config, &metrics));
        assert!(!out_of_patience(&config, &metrics[..3]));
        config.extended_from = 4;
        assert!(!out_of_patience(&config, &metrics));
    }
}
