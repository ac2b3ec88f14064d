//! `report.html`: everything about a run on one page that opens offline. No script, nothing
//! fetched; charts are SVG, pictures PNG in the page itself.

mod page_frame;
mod predictions;
mod sections;
mod table_page;

use std::collections::BTreeMap;
use std::path::PathBuf;

use sren::models::Network;
use sren::{Equivariance, Image, Similarity};
use sren_data::{Batch, Dataset, Split, TestSet};

use crate::artifact::atomic_write;
use crate::equivariance::{
    EquivarianceResult, NO_FRAMES, Plan, Scenes, Subject, measure_equivariance, plain_companion,
};
use crate::error::Result;
use crate::evaluation::{Evaluation, spread};
use crate::features::{Shown, feature_picture};
use crate::stability::{Stability, stability};
use crate::training::{EpochMetrics, RunFolder, TrainingConfig};
use predictions::{Prediction, predictions};

/// Most test images for confusion matrices and errors.
const IMAGES: usize = 2000;
/// Most test images for each point of the stability curves.
const STABILITY_IMAGES: usize = 200;
/// Images that equivariance is measured on, and how densely.
const DIGIT_SCENES: usize = 4;
const PHOTOGRAPH_SCENES: usize = 2;
const PLAN: Plan = Plan { angles: 8, positions: 2, causes: false };

pub use table_page::write_table;

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Where the run is, and the report goes.
    pub folder: &'a RunFolder,
    /// How it was trained.
    pub config: &'a TrainingConfig,
    /// The best network of the run, on the inference device.
    pub network: &'a Network,
    /// Its accuracy on the test sets.
    pub evaluation: &'a Evaluation,
    /// The command that made the run.
    pub command: &'a str,
    /// Most test images for matrices and curves, which use at most 2000 and 200.
    pub images: usize,
}

/// What is measured for the page only.
struct Measured {
    metrics: Vec<EpochMetrics>,
    classes: Vec<String>,
    upright: Vec<Prediction>,
    moved: Vec<Prediction>,
    stability: Stability,
    equivariance: EquivarianceResult,
    features: Vec<u8>,
    /// The names of the test images that errors are shown of.
    names: BTreeMap<usize, String>,
}

/// Writes `report.html` into the run's folder and returns its path.
pub fn write(report: &Report) -> Result<PathBuf> {
    let measured = measure(report)?;
    let page = sections::page(report, &measured)?;
    let path = report.folder.path().join("report.html");
    atomic_write(&path, page.as_bytes())?;
    Ok(path)
}

/// The words for what a run was trained on.
struct Words {
    /// One image.
    image: &'static str,
    /// The test set out of distribution and how it is transformed.
    moved: TestSet,
    how_moved: &'static str,
    /// The scale from which on images leave their canvas, about.
    too_large: f64,
}

impl Words {
    fn of(config: &TrainingConfig) -> Self {
        match config.image_folder {
            None => Self {
                image: "digit",
                moved: TestSet::ScaledRotatedMoved,
                how_moved: "scaled, rotated, translated",
                too_large: 2.0,
            },
            Some(_) => Self {
                image: "photograph",
                moved: TestSet::ScaledRotated,
                how_moved: "rotated, scaled",
                too_large: 1.5,
            },
        }
    }
}

fn measure(report: &Report) -> Result<Measured> {
    let Report { folder, config, network, images, .. } = *report;
    let architecture = config.network()?;
    let loaded = config.load(Split::Test)?;
    let tested = &loaded.images;
    let some = |count: usize| spread(tested.len(), images.min(count));
    let predict = |set: TestSet| predictions(network, tested, set, &some(IMAGES));
    let weights = "this run";
    let subject = Subject { network, config: &architecture, weights };
    let plain = plain_companion(network, &architecture)?;
    let title = network.equivariance().name().to_uppercase();
    let mut shown = vec![
        Shown { title: &title, network, config: &architecture, weights },
        Shown { title: "CNN", network: &plain, config: &architecture, weights: NO_FRAMES },
    ];
    // A plain CNN is shown once.
    shown.truncate(if network.equivariance() == Equivariance::None { 1 } else { 2 });
    let run = folder.path().display().to_string();
    let name = |index: usize| match (loaded.file(index), config.image_folder.is_none()) {
        (Some(file), _) => file.to_string(),
        (None, true) => format!("mnist:{index}"),
        (None, false) => format!("image {index}"),
    };
    Ok(Measured {
        names: some(IMAGES).into_iter().map(|index| (index, name(index))).collect(),
        metrics: folder.load_metrics()?,
        classes: tested.classes().to_vec(),
        upright: predict(TestSet::Upright)?,
        moved: predict(Words::of(config).moved)?,
        stability: stability(&run, network, tested, &some(STABILITY_IMAGES))?,
        equivariance: measure_equivariance(subject, None, &scenes(config, tested)?, PLAN)?,
        features: feature_picture(|transform| seen(tested, 0, transform), &shown, &[])?,
    })
}

/// Image number `index` under a transform, as the network sees it.
fn seen(images: &Dataset, index: usize, transform: &Similarity) -> Result<Image> {
    let Batch { images, shape: [_, h, w, c], .. } = images.batch(&[index], |_| Ok(*transform))?;
    Ok(Image::new(h, w, c, images)?)
}

fn scenes(config: &TrainingConfig, tested: &Dataset) -> Result<Scenes> {
    let Some(photographs) = &config.image_folder else { return Scenes::mnist(DIGIT_SCENES) };
    let indices = spread(tested.len(), PHOTOGRAPH_SCENES);
    let images = indices.iter().map(|i| tested.unpadded(*i)).collect::<Result<_, _>>()?;
    Scenes::photographs(config.data.to_string(), images, photographs.size)
}
