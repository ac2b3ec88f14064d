//! `sren eval`: accuracy on transformed digits.

use std::path::{Path, PathBuf};

use clap::Args;
use sren::Similarity;
use sren::models::{SimResNet, parameter_count};
use sren_data::{Dataset, Split, TestSet};
use sren_lab::bench::with_threads;
use sren_lab::training::{Recipe, RunFolder};
use sren_lab::{Accuracy, Evaluation, LabError, accuracy};

use crate::Failure;
use crate::output::{print, print_json};

/// Evaluate a trained network on the paper's test sets, or on one transform of your choice.
#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The folder of a run
    run: PathBuf,
    /// Test sets: upright, r, s, srt
    #[arg(long, value_name = "SETS", value_delimiter = ',', value_parser = set,
        default_values_t = TestSet::ALL.map(|set| set.name().to_string()),
        conflicts_with_all = ["angle", "scale"])]
    sets: Vec<String>,
    /// Turn every test image by this many degrees instead
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    angle: Option<f64>,
    /// Scale every test image by this instead
    #[arg(long, value_name = "S")]
    scale: Option<f64>,
    /// Test images of each set, the first of them
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    images: u16,
    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

fn set(name: &str) -> Result<String, String> {
    name.parse::<TestSet>().map(|_| name.to_string()).map_err(|e| e.to_string())
}

impl Eval {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let work = || -> Result<Evaluation, LabError> {
            if self.angle.is_none() && self.scale.is_none() {
                let sets: Result<Vec<TestSet>, _> = self.sets.iter().map(|s| s.parse()).collect();
                return evaluate(&self.run, &sets?, self.images.into());
            }
            let (angle, scale) = (self.angle.unwrap_or(0.0), self.scale.unwrap_or(1.0));
            let transform = Similarity::new(scale, angle.to_radians(), [0.0; 2])?;
            let (network, recipe) = load(&self.run)?;
            let digits = Dataset::mnist(Split::Test)?;
            let found = accuracy(&network, &digits, &first(&digits, self.images.into()), |_| {
                Ok(transform)
            })?;
            let name = format!("angle {angle} scale {scale}");
            Ok(summary(&network, &recipe, vec![(name, found)]))
        };
        let evaluation = with_threads(self.threads, work)??;
        if self.json { print_json(&evaluation) } else { print(&table(&evaluation)) }
    }
}

/// The best network of the run in `path`, ready to evaluate, and its recipe.
pub(crate) fn load(path: &Path) -> Result<(SimResNet, Recipe), LabError> {
    let (folder, recipe) = RunFolder::open(path)?;
    // Without autodiff: nothing is recorded.
    let network = recipe.network()?.init(&sren_lab::plain_device())?;
    Ok((folder.load_model(network)?, recipe))
}

/// The accuracy of the run in `path` on the first `images` images of each of `sets`.
pub(crate) fn evaluate(
    path: &Path,
    sets: &[TestSet],
    images: usize,
) -> Result<Evaluation, LabError> {
    let (network, recipe) = load(path)?;
    let digits = Dataset::mnist(Split::Test)?;
    let indices = first(&digits, images);
    let mut found = Vec::new();
    for set in sets {
        let result = accuracy(&network, &digits, &indices, |index| set.transform(index))?;
        found.push((set.name().to_string(), result));
    }
    Ok(summary(&network, &recipe, found))
}

fn first(digits: &Dataset, images: usize) -> Vec<usize> {
    (0..digits.len().min(images)).collect()
}

fn summary(network: &SimResNet, recipe: &Recipe, sets: Vec<(String, Accuracy)>) -> Evaluation {
    Evaluation {
        model: recipe.model.clone(),
        augmented: recipe.augment,
        parameters: parameter_count(network),
        sets: sets.into_iter().collect(),
    }
}

/// Table 1 of the paper: upright, R, S, SRT. It has only SREN augmented.
pub(crate) fn paper(model: &str, augmented: bool) -> Option<[f64; 4]> {
    match (model, augmented) {
        ("cnn", false) => Some([99.46, 44.41, 73.21, 33.56]),
        ("so2", false) => Some([99.23, 97.18, 72.85, 70.72]),
        ("scale", false) => Some([99.31, 35.23, 99.21, 39.2]),
        ("sren", false) => Some([99.12, 96.91, 98.48, 92.3]),
        ("sren", true) => Some([99.42, 98.3, 99.28, 95.1]),
        _ => None,
    }
}

/// Accuracies in the order of the paper's Table 1, beside the paper's where it has them.
pub(crate) fn table(evaluation: &Evaluation) -> String {
    let paper = paper(&evaluation.model, evaluation.augmented);
    let plus = if evaluation.augmented { "+" } else { "" };
    let mut text = format!("{}{plus}: {} parameters", evaluation.model, evaluation.parameters);
    text.push_str("\nset                    accuracy   paper   images");
    let mut line = |name: &str, found: &Accuracy, paper: Option<f64>| {
        let paper = paper.map_or("-".into(), |paper| format!("{paper:.2}"));
        let Accuracy { accuracy, n } = found;
        text.push_str(&format!("\n{name:<20} {accuracy:>8.2} % {paper:>7}   {n}"));
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
    text
}
