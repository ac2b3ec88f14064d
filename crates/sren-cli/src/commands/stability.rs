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
    LabError, Stability as Found, StabilityPoint, TextTable, angle_chart, atomic_write,
    scale_chart, stability, test_subset,
};

use super::eval::load;
use crate::Failure;
use crate::arguments::{Threads, image_count};
use crate::output::{create_folder, note, print, print_json};

/// Evaluate trained networks on test images rotated in steps of 15 degrees and scaled by 0.5 to 3.
#[derive(Debug, Args)]
pub(crate) struct Stability {
    /// Folders of runs, one curve per run, or mnist-sren or mnist-cnn for a bundled network
    #[arg(default_value = BUNDLED)]
    runs: Vec<PathBuf>,
    /// Test images per point: the first ones, or of your own images evenly spaced ones
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = image_count)]
    images: usize,
    /// Folder for stability.json, angle.svg and scale.svg
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    /// Print the results as JSON
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
                note(&path.display().to_string());
                let images = config.load(Split::Test)?.images;
                let indices = test_subset(&images, self.images, config.image_folder.is_some());
                stability(&path.display().to_string(), network, &images, &indices)
            };
            runs.iter().map(one).collect()
        };
        let runs = with_threads(self.threads.count(), work)??;
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
            "accuracy in per cent, {} images\n\n{}\n\n{}",
            runs.iter().map(|run| run.images).max().unwrap_or(0),
            table(&runs, "degrees", |run| &run.angle),
            table(&runs, "scale", |run| &run.scale)
        ))
    }
}

/// A line per transform, a column per run.
fn table(runs: &[Found], head: &str, points: fn(&Found) -> &Vec<StabilityPoint>) -> TextTable {
    let models = runs.iter().map(|run| run.model.as_str());
    let mut table = TextTable::new(std::iter::once(head).chain(models));
    for (i, point) in runs.first().map_or(&[][..], |run| points(run)).iter().enumerate() {
        let accuracies = runs.iter().map(|run| format!("{:.2}", points(run)[i].accuracy));
        table.row(std::iter::once(point.at.to_string()).chain(accuracies));
    }
    table
}
