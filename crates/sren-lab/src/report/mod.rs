//! `report.html`: everything about a run on one page that opens offline. No script, nothing
//! fetched; charts are SVG, pictures PNG in the page itself.

mod base64;
mod predictions;
mod sections;
mod table_page;

use std::path::PathBuf;

use sren::Equivariance;
use sren::models::SimResNet;
use sren_data::{Dataset, Split, TestSet};

use crate::artifact::write_whole;
use crate::equivariance::{
    EquivarianceResult, Plan, Scenes, Subject, measure_equivariance, plain_companion,
};
use crate::error::Result;
use crate::evaluation::Evaluation;
use crate::features::{Shown, feature_picture};
use crate::stability::{Stability, stability};
use crate::training::{EpochMetrics, Recipe, RunFolder};
use predictions::{Prediction, predictions};

/// Most test images for confusion matrices and mistakes.
const IMAGES: usize = 1000;
/// Most test images for each point of the stability curves.
const STABILITY_IMAGES: usize = 200;
/// Digits that equivariance is measured on, and how densely.
const SCENES: usize = 4;
const PLAN: Plan = Plan { angles: 8, positions: 2, causes: false };
/// The test digit whose features are shown.
const SHOWN_DIGIT: usize = 0;

pub use table_page::write_table;

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Where the run is, and the report goes.
    pub folder: &'a RunFolder,
    /// How it was trained.
    pub recipe: &'a Recipe,
    /// The best network of the run, which does not train.
    pub network: &'a SimResNet,
    /// Its accuracy on the test sets.
    pub evaluation: &'a Evaluation,
    /// The command that made the run.
    pub command: &'a str,
    /// Test images that may be looked at again for matrices and curves: at most 1000 and 200 are.
    pub images: usize,
}

/// What is measured for the page alone.
struct Measured {
    metrics: Vec<EpochMetrics>,
    upright: Vec<Prediction>,
    srt: Vec<Prediction>,
    stability: Stability,
    equivariance: EquivarianceResult,
    features: Vec<u8>,
}

/// Writes `report.html` into the run's folder and gives its path.
pub fn write(report: &Report) -> Result<PathBuf> {
    let measured = measure(report)?;
    let page = sections::page(report, &measured)?;
    let path = report.folder.path().join("report.html");
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}

fn measure(report: &Report) -> Result<Measured> {
    let Report { folder, recipe, network, images, .. } = *report;
    let config = recipe.network()?;
    let digits = Dataset::mnist(Split::Test)?;
    let look = |set: TestSet| predictions(network, &digits, set, images.min(IMAGES));
    let few: Vec<usize> = (0..images.min(STABILITY_IMAGES)).collect();
    let weights = "this run";
    let subject = Subject { network, config: &config, weights };
    let plain = plain_companion(network, &config)?;
    let title = network.equivariance().name().to_uppercase();
    let mut shown = vec![
        Shown { title: &title, network, config: &config },
        Shown { title: "CNN", network: &plain, config: &config },
    ];
    // A plain CNN has itself beside it.
    shown.truncate(if network.equivariance() == Equivariance::None { 1 } else { 2 });
    let digit = digits.image(SHOWN_DIGIT)?;
    Ok(Measured {
        metrics: folder.load_metrics()?,
        upright: look(TestSet::Upright)?,
        srt: look(TestSet::ScaledRotatedMoved)?,
        stability: stability(&folder.path().display().to_string(), network, &digits, &few)?,
        equivariance: measure_equivariance(subject, None, &Scenes::mnist(SCENES)?, PLAN)?,
        features: feature_picture(&digit, &shown, &[])?,
    })
}
