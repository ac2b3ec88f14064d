//! `sren eval`: accuracy on transformed test images.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use sren::Similarity;
use sren::models::{Network, parameter_count};
use sren_data::{Dataset, RandomTransform, Split, TestSet};
use sren_lab::inference::{BUNDLED, Model};
use sren_lab::threads::with_threads;
use sren_lab::training::TrainingConfig;
use sren_lab::{
    Accuracy, Evaluation, LabError, PhotographEvaluation, Transform, accuracy, confusion,
    paper_row, spread,
};

use super::photograph_table;
use crate::Failure;
use crate::output::{print, print_json};

/// Evaluate a trained network on test sets, or on transforms of your choice.
#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The folder of a run; mnist-sren is the network that comes with the program
    #[arg(default_value = BUNDLED)]
    run: PathBuf,
    /// Test sets: upright, r, s, srt, ood [default: upright,r,s,srt for digits, upright,ood for
    /// images of your own]
    #[arg(long, value_name = "SETS", value_delimiter = ',', value_parser = set,
        conflicts_with_all = ["angle", "scale", "angles", "scales"])]
    sets: Vec<TestSet>,
    /// Turn every test image by this many degrees instead
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    angle: Option<f64>,
    /// Scale every test image by this instead
    #[arg(long, value_name = "S")]
    scale: Option<f64>,
    /// Turn every test image at random by degrees between these instead
    #[arg(long, value_name = "FROM,TO", value_parser = range, allow_hyphen_values = true,
        conflicts_with_all = ["angle", "scale"])]
    angles: Option<[f64; 2]>,
    /// Scale every test image at random between these instead
    #[arg(long, value_name = "FROM,TO", value_parser = range, conflicts_with_all = ["angle", "scale"])]
    scales: Option<[f64; 2]>,
    /// Test images of each set: the first of them, of your own spread over all
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    images: u16,
    /// Judge by the training images that the run held out instead, to tune without the test images
    #[arg(long)]
    held_out: bool,
    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

fn set(name: &str) -> Result<TestSet, String> {
    name.parse::<TestSet>().map_err(|e| e.to_string())
}

fn range(text: &str) -> Result<[f64; 2], String> {
    let number = |part: &str| part.trim().parse::<f64>().ok();
    let parts = text.split_once(',').map(|(from, to)| (number(from), number(to)));
    match parts {
        Some((Some(from), Some(to))) => Ok([from, to]),
        _ => Err("expected two numbers with a comma between them".into()),
    }
}

/// What was found.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Report {
    Digits(Evaluation),
    ImageFolderConfig(PhotographEvaluation),
}

impl Report {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Digits(evaluation) => table(evaluation),
            Self::ImageFolderConfig(evaluation) => photograph_table::table(evaluation),
        }
    }
}

impl Eval {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let transforms = self.transforms()?;
        let judges = if self.held_out { Judges::HeldOut } else { Judges::Test };
        let work = || report(&self.run, transforms, judges, self.images.into());
        let report = with_threads(self.threads, work)??;
        match (self.json, self.held_out) {
            (true, _) => print_json(&report),
            (false, true) => print(&format!("held-out training images\n{}", report.text())),
            (false, false) => print(&report.text()),
        }
    }

    /// The transforms that were asked for, by name; none for the usual ones.
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
        Ok(named(&self.sets))
    }
}

fn named(sets: &[TestSet]) -> Vec<(String, Transform)> {
    sets.iter().map(|set| (set.name().to_string(), Transform::Set(*set))).collect()
}

/// The images that a run is judged by.
#[derive(Clone, Copy)]
pub(crate) enum Judges {
    /// Test images.
    Test,
    /// Training images that it did not learn from.
    HeldOut,
}

/// The run in `path` on the first `images` of those it is judged by, transformed by each of
/// `transforms`, or as usual if there are none.
pub(crate) fn report(
    path: &Path,
    mut transforms: Vec<(String, Transform)>,
    judges: Judges,
    images: usize,
) -> Result<Report, LabError> {
    let (network, config) = load(path)?;
    if transforms.is_empty() {
        let digits = config.image_folder.is_none();
        transforms = if digits { named(&TestSet::ALL) } else { named(&TestSet::PHOTOGRAPHS) };
    }
    let loaded = config.load(match judges {
        Judges::Test => Split::Test,
        Judges::HeldOut => Split::Train,
    })?;
    left_out(&loaded.broken);
    let mut indices = match judges {
        Judges::Test => some(&loaded.images, images, config.image_folder.is_some()),
        Judges::HeldOut => config.split(loaded.images.len())?.validation,
    };
    indices.truncate(images);
    if config.image_folder.is_none() {
        let mut found = Vec::new();
        for (name, transform) in transforms {
            let result = accuracy(&network, &loaded.images, &indices, |i| transform.at(i))?;
            found.push((name, result));
        }
        return Ok(Report::Digits(summary(&network, &config, found)));
    }
    let mut sets = std::collections::BTreeMap::new();
    for (name, transform) in transforms {
        let found = confusion(&network, &loaded.images, &indices, |i| transform.at(i))?;
        sets.insert(name, found.into());
    }
    Ok(Report::ImageFolderConfig(PhotographEvaluation {
        model: config.model.clone(),
        augmented: config.augment,
        parameters: parameter_count(&network),
        data: config.data.to_string(),
        classes: config.classes(),
        sets,
    }))
}

/// Names the files that were left out, on standard error.
pub(crate) fn left_out(broken: &[sren_data::DataError]) {
    const SHOWN: usize = 20;
    broken.iter().take(SHOWN).for_each(|error| eprintln!("left out: {error}"));
    if broken.len() > SHOWN {
        eprintln!("left out: {} more", broken.len() - SHOWN);
    }
}

/// The best network of the run in `path`, ready to evaluate, and its config.
pub(crate) fn load(path: &Path) -> Result<(Network, TrainingConfig), LabError> {
    let Model { network, config } = Model::open(path)?;
    Ok((network, config))
}

/// The first `count` of them or, where classes stand one after the other, `count` spread over all.
pub(crate) fn some(images: &Dataset, count: usize, over_all: bool) -> Vec<usize> {
    if over_all { spread(images.len(), count) } else { (0..images.len().min(count)).collect() }
}

fn summary(
    network: &Network,
    config: &TrainingConfig,
    sets: Vec<(String, Accuracy)>,
) -> Evaluation {
    Evaluation {
        model: config.model.clone(),
        augmented: config.augment,
        parameters: parameter_count(network),
        sets: sets.into_iter().collect(),
    }
}

/// Accuracies in the order of the paper's Table 1, beside the paper's where it has them.
pub(crate) fn table(evaluation: &Evaluation) -> String {
    let paper = paper_row(&evaluation.model, evaluation.augmented).map(|(_, row)| row);
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
