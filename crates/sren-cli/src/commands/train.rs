//! `sren train`: trains a network and evaluates it on the paper's test sets.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use sren::Equivariance;
use sren::models::Architecture;
use sren_data::TestSet;
use sren_lab::bench::with_threads;
use sren_lab::report::{self, Report};
use sren_lab::training::{Event, Outcome, Preset, Recipe, RunFolder, Trainer};
use sren_lab::{Evaluation, LabError, stop_wish};

use super::eval::{evaluate, load, table};
use crate::Failure;
use crate::output::print;

/// Between two lines of progress where the output is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Train a network on the bundled MNIST, upright, and evaluate it on rotated, scaled and moved
/// digits.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The recipe: quick, default or paper
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = preset)]
    preset: Preset,
    /// A recipe of one's own, such as the config.toml of a run, instead of a preset
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    config: Option<PathBuf>,
    /// What the network follows: sren, so2 (rotations), scale or cnn (nothing)
    #[arg(long, value_name = "KIND", value_parser = model)]
    model: Option<Equivariance>,
    /// The network: small, resnet18, resnet16 or wrn16-8
    #[arg(long, value_name = "NAME", value_parser = arch)]
    arch: Option<Architecture>,
    /// Turn and scale training images a little (SREN+)
    #[arg(long)]
    augment: bool,
    /// Passes over the training images
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Images a step
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Images to learn from; at most a quarter as many are held out to validate
    #[arg(long, value_name = "N")]
    images: Option<usize>,
    /// Seed of every draw
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder of the run [default: runs/<arch>-<model>-<seed>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all =
        ["preset", "config", "model", "arch", "augment", "epochs", "batch", "images", "seed", "out"])]
    resume: Option<PathBuf>,
    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Test images of each set to evaluate on at the end
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    test_images: u16,
}

fn preset(name: &str) -> Result<Preset, String> {
    name.parse().map_err(|e: sren_lab::LabError| e.to_string())
}

fn model(name: &str) -> Result<Equivariance, String> {
    name.parse().map_err(|e: sren::Error| e.to_string())
}

fn arch(name: &str) -> Result<Architecture, String> {
    name.parse().map_err(|e: sren::Error| e.to_string())
}

impl Train {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let stop = stop_wish();
        let (folder, recipe) = match &self.resume {
            Some(path) => RunFolder::open(path)?,
            None => {
                let mut recipe = self.recipe()?;
                recipe.network = Some(recipe.network()?);
                let path = self.out.clone().unwrap_or_else(|| free_folder(&recipe));
                (RunFolder::create(&path, &recipe)?, recipe)
            }
        };
        eprintln!("run: {}", folder.path().display());
        let work = || -> Result<Option<Evaluation>, sren_lab::LabError> {
            let mut run = match self.resume {
                Some(_) => Trainer::resume(recipe, folder.clone())?,
                None => Trainer::start(recipe, folder.clone())?,
            };
            let mut progress = Progress::default();
            match run.run(stop, &mut |event| progress.show(&event))? {
                Outcome::Stopped => Ok(None),
                Outcome::Done => {
                    Ok(Some(evaluate(folder.path(), &TestSet::ALL, self.test_images.into())?))
                }
            }
        };
        match with_threads(self.threads, work)?? {
            Some(evaluation) => {
                print(&table(&evaluation))?;
                let path = with_threads(self.threads, || self.report(&folder, &evaluation))??;
                eprintln!("report: {}", path.display());
                Ok(())
            }
            None => {
                let path = folder.path().display();
                eprintln!("stopped and saved; go on with: sren train --resume {path}");
                Ok(())
            }
        }
    }

    fn report(&self, folder: &RunFolder, evaluation: &Evaluation) -> Result<PathBuf, LabError> {
        let (network, recipe) = load(folder.path())?;
        let command = std::env::args().skip(1).fold("sren".to_string(), |all, a| all + " " + &a);
        report::write(&Report {
            folder,
            recipe: &recipe,
            network: &network,
            evaluation,
            command: &command,
            images: self.test_images.into(),
        })
    }

    fn recipe(&self) -> Result<Recipe, Failure> {
        let mut recipe = match &self.config {
            Some(path) => Recipe::read(path)?,
            None => self.preset.recipe()?,
        };
        if let Some(model) = self.model {
            recipe.model = model.name().into();
            recipe.network = recipe.network.map(|network| network.with_equivariance(model));
        }
        if let Some(arch) = self.arch {
            (recipe.arch, recipe.network) = (arch.name().into(), None);
        }
        recipe.augment |= self.augment;
        recipe.epochs = self.epochs.unwrap_or(recipe.epochs);
        recipe.batch = self.batch.unwrap_or(recipe.batch);
        recipe.seed = self.seed.unwrap_or(recipe.seed);
        if let Some(images) = self.images {
            recipe.training_images = images;
            recipe.validation_images = recipe.validation_images.min((images / 4).max(1));
        }
        recipe.check("train")?;
        Ok(recipe)
    }
}

/// `runs/<arch>-<model>-<seed>`, or the first of its kind that is not there yet.
fn free_folder(recipe: &Recipe) -> PathBuf {
    let plus = if recipe.augment { "+" } else { "" };
    let name = format!("{}-{}{plus}-{}", recipe.arch, recipe.model, recipe.seed);
    let numbered = |n: usize| if n == 1 { name.clone() } else { format!("{name}.{n}") };
    let path = |n| Path::new("runs").join(numbered(n));
    (1..).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(1))
}

/// One line that changes on a terminal, a line every few seconds elsewhere.
#[derive(Default)]
struct Progress {
    shown: Option<Instant>,
}

impl Progress {
    fn show(&mut self, event: &Event) {
        let terminal = std::io::stderr().is_terminal();
        match event {
            Event::Step { epoch, step, loss, accuracy, images_per_second, seconds_left } => {
                let wait = if terminal { Duration::from_millis(200) } else { LINE_EVERY };
                let since = self.shown.get_or_insert_with(Instant::now);
                if since.elapsed() < wait {
                    return;
                }
                *since = Instant::now();
                let text = format!(
                    "epoch {}/{} step {}/{}  loss {loss:.4}  accuracy {accuracy:.2} %  \
                     {images_per_second:.0} images/s  {} left",
                    epoch[0],
                    epoch[1],
                    step[0],
                    step[1],
                    clock(*seconds_left),
                );
                if terminal { eprint!("\r\x1b[K{text}") } else { eprintln!("{text}") }
            }
            Event::Epoch(metrics) => eprintln!(
                "{}epoch {}: loss {:.4}  accuracy {:.2} %  validation {:.2} %  {:.0} images/s",
                if terminal { "\r\x1b[K" } else { "" },
                metrics.epoch,
                metrics.loss,
                metrics.accuracy,
                metrics.validation_accuracy,
                metrics.images_per_second,
            ),
        }
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
