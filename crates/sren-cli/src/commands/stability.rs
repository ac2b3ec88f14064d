//! `sren stability`: accuracy against angle and scale.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use sren::models::Network;
use sren_data::Split;
use sren_lab::inference::BUNDLED;
use sren_lab::threads::with_threads;
use sren_lab::training::TrainingConfig;
use sren_lab::{
    LabError, Stability as Found, StabilityPoint, angle_chart, atomic_write, scale_chart, stability,
};

use super::eval::{load, some};
use crate::Failure;
use crate::output::{create_folder, print, print_json};

/// Evaluate trained networks on their test images turned every 15 degrees and scaled by 0.5 to 3.
#[derive(Debug, Args)]
pub(crate) struct Stability {
    /// Folders of runs, a curve each; mnist-sren is the network that comes with the program
    #[arg(default_value = BUNDLED)]
    runs: Vec<PathBuf>,
    /// Test images for each point: the first of them, of your own spread over all
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    images: u16,
    /// Folder for stability.json, angle.svg and scale.svg
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    runs: &'a [Found],
}

impl Stability {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let work = || -> Result<Vec<Found>, LabError> {
            // All runs are opened before the first is evaluated.
            let runs = self.runs.iter().map(|path| Ok((path, load(path)?)));
            let runs = runs.collect::<Result<Vec<_>, LabError>>()?;
            let one = |(path, (network, config)): &(&PathBuf, (Network, TrainingConfig))| {
                eprintln!("{}", path.display());
                let images = config.load(Split::Test)?.images;
                let indices = some(&images, self.images.into(), config.image_folder.is_some());
                stability(&path.display().to_string(), network, &images, &indices)
            };
            runs.iter().map(one).collect()
        };
        let runs = with_threads(self.threads, work)??;
        let report = Report { runs: &runs };
        if let Some(folder) = &self.output {
            create_folder(folder)?;
            let json = serde_json::to_string_pretty(&report)?;
            atomic_write(&folder.join("stability.json"), json.as_bytes())?;
            for (name, chart) in [("angle", angle_chart(&runs)), ("scale", scale_chart(&runs))] {
                atomic_write(&folder.join(format!("{name}.svg")), chart.svg_file().as_bytes())?;
            }
        }
        if self.json {
            return print_json(&report);
        }
        print(&format!(
            "accuracy in per cent, {} images\n{}\n{}",
            runs.iter().map(|run| run.images).max().unwrap_or(0),
            table(&runs, "degrees", |run| &run.angle),
            table(&runs, "scale", |run| &run.scale)
        ))
    }
}

/// A line a transform, a column a run.
fn table(runs: &[Found], head: &str, points: fn(&Found) -> &Vec<StabilityPoint>) -> String {
    let mut text = format!("\n{head:>8}");
    for run in runs {
        text.push_str(&format!("  {:>8}", run.model));
    }
    let count = runs.first().map_or(0, |run| points(run).len());
    for i in 0..count {
        text.push_str(&format!("\n{:>8}", points(&runs[0])[i].at));
        for run in runs {
            text.push_str(&format!("  {:>8.2}", points(run)[i].accuracy));
        }
    }
    text
}
