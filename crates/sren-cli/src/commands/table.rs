//! `sren table`: the paper's Table 1, trained and evaluated row by row.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sren_lab::report::write_table;
use sren_lab::threads::with_threads;
use sren_lab::training::{Outcome, Preset, RunFolder, Trainer, TrainingConfig};
use sren_lab::{Evaluation, EvaluationReport, LabError, TableRow, row_parts, table_text};

use super::eval::evaluate;
use super::train::{preset, write_page};
use crate::Failure;
use crate::arguments::{Threads, image_count};
use crate::output::{note, print, print_json};
use crate::{interrupted, progress};

/// Train and evaluate every row of the paper's Table 1. Rows that are complete are not trained
/// again; an interrupted one is resumed.
#[derive(Debug, Args)]
pub(crate) struct Table {
    /// Training configuration of every row: quick, default (and plus for sren+), plus or paper
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = preset)]
    preset: Preset,
    /// Rows: cnn, so2, scale, sren, sren+, and cnn-full, which is augmented as the test images are
    #[arg(long, value_name = "ROWS", value_delimiter = ',', value_parser = row,
        default_values_t = PAPER.map(String::from))]
    rows: Vec<String>,
    /// Seeds of the rows sren and sren+: 1 to N; the other rows use seed 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Folder of the runs
    #[arg(short, long, value_name = "DIR", default_value = "runs/table")]
    out: PathBuf,
    /// Training images, instead of the configuration's number
    #[arg(long, value_name = "N", value_parser = image_count)]
    images: Option<usize>,
    /// Test images per set
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = image_count)]
    test_images: usize,
    #[command(flatten)]
    threads: Threads,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// The rows of the paper, in its order.
const PAPER: [&str; 5] = ["cnn", "so2", "scale", "sren", "sren+"];
/// A row that is not in the paper.
const CNN_FULL: &str = "cnn-full";

fn row(name: &str) -> Result<String, String> {
    match PAPER.contains(&name) || name == CNN_FULL {
        true => Ok(name.to_string()),
        false => Err(format!("expected one of {}, {CNN_FULL}", PAPER.join(", "))),
    }
}

impl Table {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let mut rows = Vec::new();
        for name in &self.rows {
            let seeds = if name.starts_with("sren") { self.seeds } else { 1 };
            let mut found = Vec::new();
            for seed in 1..=seeds {
                match with_threads(self.threads.count(), || self.one(name, seed))?? {
                    Some(evaluation) => found.push(evaluation),
                    None => {
                        note("stopped and saved; the same command resumes it");
                        return Ok(interrupted());
                    }
                }
            }
            rows.push(TableRow::new(name, found));
        }
        let path = self.out.join("report.html");
        write_table(&path, &rows)?;
        note(&format!("report: {}", path.display()));
        if self.json {
            print_json(&rows)?
        } else {
            print(&table_text(&rows))?
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Trains, if that is not complete, and evaluates one run; `None` if it was interrupted.
    fn one(&self, name: &str, seed: u64) -> Result<Option<Evaluation>, LabError> {
        let path = self.out.join(format!("{name}-{seed}"));
        let config = self.config(name, seed)?;
        let (mut run, folder) = if path.join("config.toml").exists() {
            let (folder, found) = RunFolder::open(&path)?;
            if let Some(field) = config.difference(&found)? {
                let name = path.display().to_string();
                let expected = format!("a run with the {field} of this command (or another -o)");
                return Err(LabError::invalid(name, expected, "another"));
            }
            (Trainer::resume(found, folder.clone())?, folder)
        } else {
            let folder = RunFolder::create(&path, &config)?;
            (Trainer::start(config, folder.clone())?, folder)
        };
        note(&format!("run: {}", path.display()));
        match progress::train(&mut run)? {
            Outcome::Stopped => Ok(None),
            Outcome::Done => {
                let evaluation = self.evaluated(&path)?;
                write_page(&folder, &evaluation, self.test_images)?;
                Ok(Some(evaluation))
            }
        }
    }

    fn evaluated(&self, path: &Path) -> Result<Evaluation, LabError> {
        match evaluate(path, self.test_images)? {
            EvaluationReport::Digits(evaluation) => Ok(evaluation),
            EvaluationReport::Photographs(_) => {
                let name = path.display().to_string();
                Err(LabError::invalid(name, "a run on MNIST", "one on other images"))
            }
        }
    }

    fn config(&self, name: &str, seed: u64) -> Result<TrainingConfig, LabError> {
        let preset = match (self.preset, name) {
            (Preset::Default, "sren+") => Preset::Plus,
            (preset, _) => preset,
        };
        let mut config = preset.config()?;
        if config.image_folder.is_some() {
            return Err(LabError::invalid("table", "a preset for MNIST", "one for photographs"));
        }
        let (model, augment) = row_parts(name);
        (config.model, config.augment) = (model.into(), augment);
        config.seed = seed;
        if let Some(images) = self.images {
            config.set_training_images(images);
        }
        config.network = None;
        config.network = Some(config.network()?);
        config.check("table")?;
        Ok(config)
    }
}
