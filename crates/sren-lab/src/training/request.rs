//! What is asked for when a run starts: a preset and what differs from it.

use std::path::{Path, PathBuf};

use sren::Equivariance;
use sren::models::Architecture;
use sren_data::{AugmentationPolicy, DataError, Source, Split, stl10};

use super::config::{Preset, TrainingConfig};
use super::fine_tuning::FineTuning;
use super::run_folder::RunFolder;
use super::trainer::Trainer;
use crate::error::{LabError, Result};
use crate::inference::{Model, inference_device};

/// A run to start. What is not given is that of the preset.
#[derive(Debug, Clone, Default)]
pub struct TrainingRequest {
    /// The images: mnist, a folder, or stl10:DIR.
    pub data: Option<Source>,
    /// Side that images of one's own are resized to, in pixels.
    pub size: Option<usize>,
    /// The training configuration by name: the default one for digits, photos for other images.
    pub preset: Option<Preset>,
    /// A file with a training configuration, instead of a preset.
    pub config: Option<PathBuf>,
    /// The equivariance group.
    pub model: Option<Equivariance>,
    /// The network.
    pub arch: Option<Architecture>,
    /// How training images are rotated, scaled and moved.
    pub augment: Option<AugmentationPolicy>,
    /// Whether photographs are not augmented.
    pub no_augment: bool,
    /// Passes over the training images.
    pub epochs: Option<usize>,
    /// Images per step.
    pub batch: Option<usize>,
    /// Images to learn from.
    pub images: Option<usize>,
    /// Seed of all random numbers.
    pub seed: Option<u64>,
    /// Folder of the run.
    pub out: Option<PathBuf>,
    /// The run whose weights this one starts from.
    pub from: Option<PathBuf>,
    /// Whether only the head learns.
    pub freeze_backbone: bool,
}

impl TrainingRequest {
    /// Reads the images and creates the folder of the run. `on_ignored` gets why each unreadable
    /// file is not trained on, and the files that are no images by their names.
    pub fn start(
        &self,
        on_ignored: impl FnOnce(Vec<DataError>, Vec<PathBuf>),
    ) -> Result<(Trainer, RunFolder)> {
        let mut config = self.config()?;
        let mut loaded = config.load(Split::Train)?;
        on_ignored(std::mem::take(&mut loaded.broken), std::mem::take(&mut loaded.others));
        config.fit_to(&loaded);
        config.check("train")?;
        config.split(&loaded.images)?;
        config.check_test_images()?;
        config.network = Some(config.network()?);
        if let Some(tuning) = &config.fine_tuning {
            // Weights that do not fit are found before there is a folder.
            let network = config.network()?.init(&inference_device()).map_err(LabError::from)?;
            tuning.start(network, &config.classes())?;
        }
        let path = self.out.clone().unwrap_or_else(|| free_folder(&config));
        let folder = RunFolder::create(&path, &config)?;
        Ok((Trainer::start_on(loaded, config, folder.clone())?, folder))
    }

    /// The training configuration; what follows from the images is not filled in yet.
    pub fn config(&self) -> Result<TrainingConfig> {
        let start = self.from.as_deref().map(Model::history).transpose()?;
        let digits = self.data.as_ref().is_none_or(Source::is_mnist);
        let mut config = match (&self.config, self.preset, &start) {
            (Some(path), ..) => TrainingConfig::read(path)?,
            (None, Some(preset), _) => preset.config()?,
            (None, None, Some((config, _))) => config.clone(),
            (None, None, None) if digits => Preset::Default.config()?,
            (None, None, None) => Preset::Photos.config()?,
        };
        if let Some(data) = &self.data {
            take_data(&mut config, data)?;
        }
        if let (Some(path), Some((start, _))) = (&self.from, &start) {
            self.start_from(path, start, &mut config)?;
        }
        config.data_absolute = Some(config.source().absolute()).filter(|data| !data.is_mnist());
        match &mut config.image_folder {
            None if self.size.is_some() || self.no_augment => {
                let expected = "images of your own (--data) for --size and --no-augment";
                return Err(LabError::invalid("train", expected, "mnist"));
            }
            None => {}
            Some(photographs) => {
                if let Some(size) = self.size {
                    photographs.resize(size);
                }
                photographs.augment = photographs.augment.filter(|_| !self.no_augment);
            }
        }
        if let Some(model) = self.model {
            config.model = model.name().into();
            config.network = config.network.map(|network| network.with_equivariance(model));
        }
        if let Some(arch) = self.arch {
            (config.arch, config.network) = (arch.name().into(), None);
            if !arch.config(1, 2).backbone.has_independent_positions() {
                config.positions = 0;
            }
        }
        config.extended_from = 0;
        config.augment = self.augment.unwrap_or(config.augment);
        config.epochs = self.epochs.unwrap_or(config.epochs);
        config.batch = self.batch.unwrap_or(config.batch);
        config.seed = self.seed.unwrap_or(config.seed);
        if let Some(images) = self.images {
            config.set_training_images(images);
        }
        config.check("train")?;
        Ok(config)
    }

    /// Takes over the network of another run, and how it sees images.
    fn start_from(
        &self,
        path: &Path,
        start: &TrainingConfig,
        config: &mut TrainingConfig,
    ) -> Result<()> {
        let (name, digits) = (path.display().to_string(), start.image_folder.is_none());
        if digits != config.data.is_mnist() {
            let of = |digits: bool| if digits { "digits" } else { "photographs" };
            let expected = format!("a run on {}", of(!digits));
            return Err(LabError::invalid(name, expected, format!("one on {}", of(digits))));
        }
        if let (Some(own), Some(other)) = (&mut config.image_folder, &start.image_folder) {
            (own.size, own.canvas) = (other.size, other.canvas);
        }
        (config.arch, config.model) = (start.arch.clone(), start.model.clone());
        config.network = Some(start.network()?);
        config.positions = start.positions;
        // The bundled model has a name, runs have a folder.
        let from = match path.exists() {
            true => std::path::absolute(path)
                .map_err(|e| LabError::invalid(name, "a path", e.to_string()))?,
            false => path.into(),
        };
        config.fine_tuning = Some(FineTuning::new(from, self.freeze_backbone));
        Ok(())
    }
}

impl Trainer {
    /// The run in `path`, from where it stopped, with its folder; with `epochs` until that epoch,
    /// also a finished one.
    pub fn reopen(path: &Path, epochs: Option<usize>) -> Result<(Self, RunFolder)> {
        let (mut folder, mut config) = RunFolder::open(path)?;
        folder.lock()?;
        if let Some(epochs) = epochs {
            folder.set_epochs(&mut config, epochs)?;
        }
        config.check_test_images()?;
        let run = Self::resume(config.clone(), folder.clone())?;
        if epochs.is_some() {
            folder.save_config(&config)?;
        }
        Ok((run, folder))
    }
}

/// Another dataset than that of the configuration: what depends on it is reset.
fn take_data(config: &mut TrainingConfig, data: &Source) -> Result<()> {
    if config.source().absolute() == data.absolute() {
        config.data = data.clone();
        return Ok(());
    }
    config.data_absolute = None;
    if data.is_mnist() {
        let expected = "a training configuration for mnist";
        return Err(LabError::invalid("train", expected, config.data.to_string()));
    }
    config.data = data.clone();
    (config.training_images, config.validation_images) = (0, 0);
    let photographs = Preset::Photos.config()?.image_folder;
    config.image_folder = config.image_folder.take().or(photographs);
    if let Some(photographs) = &mut config.image_folder {
        (photographs.images, photographs.classes) = (0, Vec::new());
        if matches!(config.data, Source::Stl10(_)) {
            photographs.resize(stl10::SIDE);
        }
    }
    Ok(())
}

/// `runs/<arch>-<model>-<seed>`, with a number if that folder exists.
fn free_folder(config: &TrainingConfig) -> PathBuf {
    let TrainingConfig { arch, model, augment, seed, .. } = config;
    let name = format!("{arch}-{model}{}-{seed}", augment.suffix());
    let numbered = |n: usize| if n == 1 { name.clone() } else { format!("{name}.{n}") };
    let path = |n| Path::new("runs").join(numbered(n));
    (1..).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(1))
}
