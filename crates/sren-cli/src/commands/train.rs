//! `sren train`: trains a network and evaluates it on its test sets.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sren::Equivariance;
use sren::models::Architecture;
use sren_data::{AugmentationPolicy, DataError, Source};
use sren_lab::report as page;
use sren_lab::threads::with_threads;
use sren_lab::training::{Outcome, Preset, RunFolder, Trainer, TrainingRequest};
use sren_lab::{Evaluation, EvaluationReport, LabError};

use super::eval::{evaluate, load, skipped, text};
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
    /// Rotate and scale training images: paper (slightly, SREN+), full (as the test images are) or
    /// none [default without a value: paper]
    #[arg(long, value_name = "POLICY", num_args = 0..=1, default_missing_value = "paper",
        value_parser = augmentation, conflicts_with = "no_augment")]
    augment: Option<AugmentationPolicy>,
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

fn augmentation(name: &str) -> Result<AugmentationPolicy, String> {
    name.parse().map_err(|e: DataError| e.to_string())
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
        let work = || -> Result<Option<(EvaluationReport, RunFolder)>, String> {
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
                    let found = evaluate(folder.path(), self.test_images);
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

    /// Prints the results and writes the run's page.
    fn show(&self, report: &EvaluationReport, folder: &RunFolder) -> Result<(), Failure> {
        print(&text(report, "test images"))?;
        let evaluation = match report {
            EvaluationReport::Digits(evaluation) => evaluation.clone(),
            EvaluationReport::Photographs(evaluation) => evaluation.into(),
        };
        let write = || write_page(folder, &evaluation, self.test_images);
        let path = with_threads(self.threads.count(), write)??;
        note(&format!("report: {}", path.display()));
        Ok(())
    }

    /// The run, with its images loaded; files that are no images go to `ignored`.
    fn prepare(&self, ignored: &mut Ignored) -> Result<(Trainer, RunFolder), Failure> {
        if let Some(path) = &self.resume {
            return Ok(Trainer::reopen(path, self.epochs)?);
        }
        Ok(self.request().start(|broken, others| {
            if !broken.is_empty() {
                let count = broken.len();
                note(&format!("{count} unreadable files are skipped; they are listed at the end"));
            }
            *ignored = Ignored { broken, others };
        })?)
    }

    fn request(&self) -> TrainingRequest {
        TrainingRequest {
            data: self.data.clone(),
            size: self.size,
            preset: self.preset,
            config: self.config.clone(),
            model: self.model,
            arch: self.arch,
            augment: self.augment,
            no_augment: self.no_augment,
            epochs: self.epochs,
            batch: self.batch,
            images: self.images,
            seed: self.seed,
            out: self.out.clone(),
            from: self.from.clone(),
            freeze_backbone: self.freeze_backbone,
        }
    }
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
