//! `sren eval`: accuracy on transformed test images.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use sren::Similarity;
use sren::models::Network;
use sren_data::{NamedImage, RandomTransform, Source, TestSet};
use sren_lab::inference::{BUNDLED, Model};
use sren_lab::threads::with_threads;
use sren_lab::training::TrainingConfig;
use sren_lab::{
    Accuracy, Evaluation, EvaluationReport, EvaluationRequest, LabError, Subset, TextTable,
    Transform, grouped, paper_row,
};

use super::photograph_table;
use super::train::source;
use crate::Failure;
use crate::arguments::{Threads, image_count};
use crate::output::{note, print, print_json};

/// Greatest angle in degrees, and greatest scale: the least is its inverse.
const MAX_ANGLE: f64 = 36_000.0;
const MAX_SCALE: f64 = 100.0;
/// Interrupts end the process: there is nothing to save.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Evaluate a trained network on test sets, or under transforms of your choice.
#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network
    #[arg(default_value = BUNDLED)]
    run: PathBuf,
    /// Digits of the bundled test set, mnist:N or mnist:A-B, instead of the first ones
    #[arg(value_name = "DIGITS", conflicts_with = "held_out")]
    digits: Option<String>,
    /// Test sets: upright, r (any angle), s (scaled by 1 to 2), srt (both, moved by up to 10 pixels),
    /// ood (r and s), aff (up to 20 degrees, 0.8 to 1.2, 8 pixels) [default: upright,r,s,srt for digits,
    /// upright,ood for your own images]
    #[arg(long, value_name = "SETS", value_delimiter = ',', value_parser = set,
        conflicts_with_all = ["angle", "scale", "angles", "scales"])]
    sets: Vec<TestSet>,
    /// Rotate every test image by this many degrees instead
    #[arg(long, value_name = "DEG", value_parser = angle, allow_negative_numbers = true)]
    angle: Option<f64>,
    /// Scale every test image by this factor instead
    #[arg(long, value_name = "S", value_parser = scale)]
    scale: Option<f64>,
    /// Rotate every test image by a random angle in this range of degrees instead
    #[arg(long, value_name = "FROM,TO", value_parser = |text: &str| range(text, angle), allow_hyphen_values = true,
        conflicts_with_all = ["angle", "scale"])]
    angles: Option<[f64; 2]>,
    /// Scale every test image by a random factor in this range instead
    #[arg(long, value_name = "FROM,TO", value_parser = |text: &str| range(text, scale),
        conflicts_with_all = ["angle", "scale"])]
    scales: Option<[f64; 2]>,
    /// Test images per set: the first ones, or of your own images evenly spaced ones
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = image_count)]
    images: usize,
    /// Where the images of the run are now: a folder, or stl10:DIR
    #[arg(long, value_name = "DATA", value_parser = source, conflicts_with = "digits")]
    data: Option<Source>,
    /// Evaluate on the held-out training images instead, to tune without the test images
    #[arg(long)]
    held_out: bool,
    #[command(flatten)]
    threads: Threads,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

fn set(name: &str) -> Result<TestSet, String> {
    name.parse::<TestSet>().map_err(|e| e.to_string())
}

fn angle(text: &str) -> Result<f64, String> {
    number(text, -MAX_ANGLE..=MAX_ANGLE)
}

fn scale(text: &str) -> Result<f64, String> {
    number(text, 1.0 / MAX_SCALE..=MAX_SCALE)
}

/// A number within its bounds.
fn number(text: &str, bounds: RangeInclusive<f64>) -> Result<f64, String> {
    let expected = || format!("expected a number of {} to {}", bounds.start(), bounds.end());
    text.trim().parse().ok().filter(|value| bounds.contains(value)).ok_or_else(expected)
}

/// Two numbers with a comma between them.
fn range(text: &str, number: fn(&str) -> Result<f64, String>) -> Result<[f64; 2], String> {
    let parts = text.split_once(',').ok_or("expected two numbers with a comma between them")?;
    Ok([number(parts.0)?, number(parts.1)?])
}

/// The results on `images` as a table.
pub(crate) fn text(report: &EvaluationReport, images: &str) -> String {
    match report {
        EvaluationReport::Digits(evaluation) => table(evaluation, images),
        EvaluationReport::Photographs(evaluation) => photograph_table::table(evaluation, images),
    }
}

impl Eval {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let transforms = self.transforms()?;
        // The bundled network is the default, also where only digits are named.
        let (run, digits) = match (&self.digits, self.run.to_str()) {
            (None, Some(name)) if name.starts_with("mnist:") && !self.run.exists() => {
                (Path::new(BUNDLED), Some(name))
            }
            (digits, _) => (self.run.as_path(), digits.as_deref()),
        };
        if let (Some(name), true) = (digits, self.held_out) {
            let got = format!("{name}, test digits");
            return Err(LabError::invalid("eval --held-out", "training images", got).into());
        }
        let subset = match digits {
            Some(name) => Subset::Digits(test_digits(name)?),
            None if self.held_out => Subset::HeldOut,
            None => Subset::Test,
        };
        let request = EvaluationRequest { transforms, subset, images: self.images };
        let work = || {
            let mut model = Model::open(run)?;
            if let Some(data) = &self.data {
                model.config.replace_data(data)?;
            }
            request.run(run, &model, &NEVER, skipped)
        };
        let report = with_threads(self.threads.count(), work)??;
        match (self.json, self.held_out) {
            (true, _) => print_json(&report),
            (false, true) => print(&text(&report, "held-out training images")),
            (false, false) => print(&text(&report, "test images")),
        }
    }

    /// The transforms of the arguments, by name; empty for the default ones.
    fn transforms(&self) -> Result<Vec<(String, Transform)>, LabError> {
        if self.angle.is_some() || self.scale.is_some() {
            let (angle, scale) = (self.angle.unwrap_or(0.0), self.scale.unwrap_or(1.0));
            let transform = Similarity::new(scale, angle.to_radians(), [0.0; 2])?;
            return Ok(vec![(format!("angle {angle} scale {scale}"), Transform::Fixed(transform))]);
        }
        if self.angles.is_some() || self.scales.is_some() {
            let angles @ [a, b] = self.angles.unwrap_or([0.0; 2]);
            let scales @ [s, t] = self.scales.unwrap_or([1.0; 2]);
            let transform = RandomTransform::new(angles, scales)?;
            let name = format!("angles {a} to {b} scales {s} to {t}");
            return Ok(vec![(name, Transform::Random(transform))]);
        }
        Ok(Transform::named(&self.sets))
    }
}

/// The numbers of digits that are named `mnist:N` or `mnist:A-B`.
fn test_digits(name: &str) -> Result<Vec<usize>, Failure> {
    let number = |image: NamedImage| match image {
        NamedImage::Digit(index) => Ok(index),
        NamedImage::File(_) => Err(format!("{name}: expected mnist:N or mnist:A-B").into()),
    };
    NamedImage::parse(name)?.into_iter().map(number).collect()
}

/// Evaluates the run in `path` on at most `images` test images, under the default transforms.
pub(crate) fn evaluate(path: &Path, images: usize) -> Result<EvaluationReport, LabError> {
    EvaluationRequest::test(images).run(path, &Model::open(path)?, &NEVER, skipped)
}

/// Lists the files that were skipped, on standard error.
pub(crate) fn skipped(broken: &[sren_data::DataError], others: &[PathBuf]) {
    const SHOWN: usize = 20;
    if let Some(first) = others.first() {
        let (count, first) = (others.len(), first.display());
        note(&format!(
            "skipped: {count} files that are no images by their names, the first: {first}"
        ));
    }
    broken.iter().take(SHOWN).for_each(|error| note(&format!("skipped: {error}")));
    if broken.len() > SHOWN {
        note(&format!("skipped: {} more", broken.len() - SHOWN));
    }
}

/// The best network of the run in `path`, on the inference device, and its configuration.
pub(crate) fn load(path: &Path) -> Result<(Network, TrainingConfig), LabError> {
    let Model { network, config } = Model::open(path)?;
    Ok((network, config))
}

/// Accuracies in the order of the paper's Table 1, beside those of the paper.
fn table(evaluation: &Evaluation, images: &str) -> String {
    let paper = paper_row(&evaluation.model, evaluation.augment).map(|(_, row)| row);
    let suffix = evaluation.augment.suffix();
    let mut table = TextTable::new(["set", "accuracy", "paper", "images"]);
    let mut line = |name: &str, found: &Accuracy, paper: Option<f64>| {
        let paper = paper.map_or("-".into(), |paper| format!("{paper:.2}"));
        let Accuracy { accuracy, n } = found;
        table.row([name.to_string(), format!("{accuracy:.2} %"), paper, grouped(*n)]);
    };
    for (index, set) in TestSet::ALL.iter().enumerate() {
        if let Some(found) = evaluation.sets.get(set.name()) {
            line(set.name(), found, paper.map(|paper| paper[index]));
        }
    }
    let is_new = |name: &str| TestSet::ALL.iter().all(|set| set.name() != name);
    for (name, found) in evaluation.sets.iter().filter(|(name, _)| is_new(name)) {
        line(name, found, None);
    }
    let parameters = grouped(evaluation.parameters);
    format!("{}{suffix}: {parameters} parameters, {images}\n\n{table}", evaluation.model)
}
