//! `sren train`: trains a network and evaluates it on its test sets.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sren::Equivariance;
use sren::models::Architecture;
use sren_data::{DataError, Source, Split};
use sren_lab::inference::Model;
use sren_lab::report as page;
use sren_lab::threads::with_threads;
use sren_lab::training::{FineTuning, Outcome, Preset, RunFolder, Trainer, TrainingConfig};
use sren_lab::{Evaluation, LabError};

use super::eval::{Report, Subset, load, report, skipped};
use crate::Failure;
use crate::arguments::{Threads, image_count};
use crate::output::{note, print};
use crate::{interrupted, progress};

/// Train a network on upright images, the bundled MNIST or your own, and evaluate it on rotated and
/// scaled ones.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// Dataset: mnist, DIR with DIR/train/<class>/*, DIR/test/<class>/* and, if you have one,
    /// DIR/val/<class>/*, DIR with DIR/<class>/*, or stl10:DIR [default: mnist]
    #[arg(long, value_name = "DATA", value_parser = source)]
    data: Option<Source>,
    /// Side that your own images are resized to, in pixels [default: 64]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Training configuration: quick, default, plus (SREN+), paper, photos or stl10 [default:
    /// default, or photos with --data]
    #[arg(long, value_name = "NAME", value_parser = preset)]
    preset: Option<Preset>,
    /// File with a training configuration, such as the config.toml of a run, instead of a preset
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    config: Option<PathBuf>,
    /// Equivariance group: sren (similarity), so2 (rotation), scale or cnn (none)
    #[arg(long, value_name = "KIND", value_parser = model)]
    model: Option<Equivariance>,
    /// Architecture: small, wide, blocks, resnet18, resnet16, wrn16-8 or photos
    #[arg(long, value_name = "NAME", value_parser = arch)]
    arch: Option<Architecture>,
    /// Rotate and scale training images slightly (SREN+)
    #[arg(long, conflicts_with = "no_augment")]
    augment: bool,
    /// No augmentation of photographs: no flips, no crops, no colour jitter
    #[arg(long)]
    no_augment: bool,
    /// Epochs: passes over the training images
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Images per step
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Training images, of each class its share; at most a quarter as many are held out for
    /// validation [default: all]
    #[arg(long, value_name = "N", value_parser = image_count)]
    images: Option<usize>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder of the run [default: runs/<arch>-<model>-<seed>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the run in this folder; with --epochs until that epoch, also a finished one
    #[arg(long, value_name = "DIR", conflicts_with_all =
        ["data", "size", "preset", "config", "model", "arch", "augment", "no_augment", "batch", "images", "seed", "out", "from"])]
    resume: Option<PathBuf>,
    /// Start from the weights of this run, with a new head where the classes are others
    #[arg(long, value_name = "RUN", conflicts_with_all = ["model", "arch", "size"])]
    from: Option<PathBuf>,
    /// Train the head only, the backbone keeps the weights of --from
    #[arg(long, requires = "from")]
    freeze_backbone: bool,
    #[command(flatten)]
    threads: Threads,
    /// Test images per set for the evaluation at the end
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = image_count)]
    test_images: usize,
}

pub(crate) fn source(name: &str) -> Result<Source, String> {
    Ok(name.to_string().into())
}

pub(crate) fn preset(name: &str) -> Result<Preset, String> {
    name.parse().map_err(|e: sren_lab::LabError| e.to_string())
}

fn model(name: &str) -> Result<Equivariance, String> {
    name.parse().map_err(|e: sren::Error| e.to_string())
}

pub(crate) fn arch(name: &str) -> Result<Architecture, String> {
    name.parse().map_err(|e: sren::Error| e.to_string())
}

/// Files of a dataset that are not trained on.
#[derive(Default)]
struct Ignored {
    /// Why each unreadable one is.
    broken: Vec<DataError>,
    /// Those that are no images by their names.
    others: Vec<PathBuf>,
}

impl Train {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let mut ignored = Ignored::default();
        let work = || -> Result<Option<(Report, RunFolder)>, String> {
            let (mut run, folder) = self.prepare(&mut ignored).map_err(|e| e.to_string())?;
            note(&format!("run: {}", folder.path().display()));
            if let Some([before, now]) = run.changed_threads() {
                note(&format!("{now} threads instead of {before}: the last bits will differ"));
            }
            match progress::train(&mut run).map_err(|e| e.to_string())? {
                Outcome::Stopped => {
                    let path = folder.path().display();
                    note(&format!("stopped and saved; resume with: sren train --resume {path}"));
                    Ok(None)
                }
                Outcome::Done => {
                    let found = self.evaluate(&folder);
                    Ok(Some((found.map_err(|e| e.to_string())?, folder)))
                }
            }
        };
        let done = with_threads(self.threads.count(), work)?;
        let shown = match done {
            Ok(Some((report, folder))) => self.show(&report, &folder).map(|()| ExitCode::SUCCESS),
            Ok(None) => Ok(interrupted()),
            Err(error) => Err(error.into()),
        };
        skipped(&ignored.broken, &ignored.others);
        shown
    }

    fn evaluate(&self, folder: &RunFolder) -> Result<Report, LabError> {
        let (network, config) = load(folder.path())?;
        let trained = (&network, &config);
        report(folder.path(), trained, Vec::new(), Subset::Test, self.test_images)
    }

    /// Prints the results and writes the run's page.
    fn show(&self, report: &Report, folder: &RunFolder) -> Result<(), Failure> {
        print(&report.text())?;
        let evaluation = match report {
            Report::Digits(evaluation) => evaluation.clone(),
            Report::Photographs(evaluation) => evaluation.into(),
        };
        let write = || write_page(folder, &evaluation, self.test_images);
        let path = with_threads(self.threads.count(), write)??;
        note(&format!("report: {}", path.display()));
        Ok(())
    }

    /// The run, with its images loaded; files that are no images go to `ignored`.
    fn prepare(&self, ignored: &mut Ignored) -> Result<(Trainer, RunFolder), Failure> {
        if let Some(path) = &self.resume {
            let (mut folder, mut config) = RunFolder::open(path)?;
            folder.lock()?;
            if let Some(epochs) = self.epochs {
                folder.set_epochs(&mut config, epochs)?;
            }
            config.check_test_images()?;
            return Ok((Trainer::resume(config, folder.clone())?, folder));
        }
        let mut config = self.config()?;
        let mut loaded = config.load(Split::Train)?;
        *ignored = Ignored {
            broken: std::mem::take(&mut loaded.broken),
            others: std::mem::take(&mut loaded.others),
        };
        if !ignored.broken.is_empty() {
            let count = ignored.broken.len();
            note(&format!("{count} unreadable files are skipped; they are listed at the end"));
        }
        config.fit_to(&loaded);
        config.check("train")?;
        config.split(&loaded.images)?;
        config.check_test_images()?;
        config.network = Some(config.network()?);
        let path = self.out.clone().unwrap_or_else(|| free_folder(&config));
        let folder = RunFolder::create(&path, &config)?;
        Ok((Trainer::start_on(loaded, config, folder.clone())?, folder))
    }

    fn config(&self) -> Result<TrainingConfig, Failure> {
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
                return Err(LabError::invalid("train", expected, "mnist").into());
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
        config.augment |= self.augment;
        config.epochs = self.epochs.unwrap_or(config.epochs);
        config.batch = self.batch.unwrap_or(config.batch);
        config.seed = self.seed.unwrap_or(config.seed);
        if let Some(images) = self.images {
            config.set_training_images(images);
        }
        config.check("train")?;
        Ok(config)
    }
}

impl Train {
    /// Takes over the network of another run, and how it sees images.
    fn start_from(
        &self,
        path: &Path,
        start: &TrainingConfig,
        config: &mut TrainingConfig,
    ) -> Result<(), Failure> {
        let (name, digits) = (path.display().to_string(), start.image_folder.is_none());
        if digits != config.data.is_mnist() {
            let of = |digits: bool| if digits { "digits" } else { "photographs" };
            let expected = format!("a run on {}", of(!digits));
            return Err(LabError::invalid(name, expected, format!("one on {}", of(digits))).into());
        }
        if let (Some(own), Some(other)) = (&mut config.image_folder, &start.image_folder) {
            (own.size, own.canvas) = (other.size, other.canvas);
        }
        (config.arch, config.model) = (start.arch.clone(), start.model.clone());
        (config.network, config.extended_from) = (Some(start.network()?), 0);
        config.positions = start.positions;
        // The bundled model has a name, runs have a folder.
        let from = if path.exists() { std::path::absolute(path)? } else { path.into() };
        config.fine_tuning = Some(FineTuning::new(from, self.freeze_backbone));
        Ok(())
    }
}

/// Another dataset than that of the configuration: what depends on it is reset.
fn take_data(config: &mut TrainingConfig, data: &Source) -> Result<(), Failure> {
    if config.data == *data {
        return Ok(());
    }
    config.data_absolute = None;
    if data.is_mnist() {
        let expected = "a training configuration for mnist";
        return Err(LabError::invalid("train", expected, config.data.to_string()).into());
    }
    config.data = data.clone();
    (config.training_images, config.validation_images) = (0, 0);
    let photographs = Preset::Photos.config()?.image_folder;
    config.image_folder = config.image_folder.take().or(photographs);
    if let Some(photographs) = &mut config.image_folder {
        (photographs.images, photographs.classes) = (0, Vec::new());
        if matches!(config.data, Source::Stl10(_)) {
            photographs.resize(sren_data::stl10::SIDE);
        }
    }
    Ok(())
}

/// Writes report.html of a run, with at most `images` test images.
pub(crate) fn write_page(
    folder: &RunFolder,
    evaluation: &Evaluation,
    images: usize,
) -> Result<PathBuf, LabError> {
    let (network, config) = load(folder.path())?;
    let command = std::env::args().skip(1).fold("sren".to_string(), |all, a| all + " " + &a);
    page::write(&page::Report {
        folder,
        config: &config,
        network: &network,
        evaluation,
        command: &command,
        images,
    })
}

/// `runs/<arch>-<model>-<seed>`, with a number if that folder exists.
fn free_folder(config: &TrainingConfig) -> PathBuf {
    let plus = if config.augment { "+" } else { "" };
    let name = format!("{}-{}{plus}-{}", config.arch, config.model, config.seed);
    let numbered = |n: usize| if n == 1 { name.clone() } else { format!("{name}.{n}") };
    let path = |n| Path::new("runs").join(numbered(n));
    (1..).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(1))
}
