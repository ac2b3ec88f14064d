//! `sren equivariance`: the equivariance error of layers and of local frames.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::error::ErrorKind;
use sren::Weights;
use sren::models::{Architecture, Network, NetworkConfig};
use sren_data::CANVAS;
use sren_lab::equivariance::{EquivarianceResult, Plan, Scenes, Subject, measure_equivariance};
use sren_lab::inference::inference_device;
use sren_lab::threads::with_threads;
use sren_lab::{LabError, atomic_write};

use super::eval::load;
use super::pose_lemma::PoseLemma;
use super::train::arch;
use crate::arguments::Threads;
use crate::output::{create_folder, print, print_json};
use crate::{Failure, wrong_usage};

/// Default number of images for the frames.
const LEMMA_IMAGES: u32 = 400;
/// Most images.
const MAX_IMAGES: u32 = 100_000;

/// Measure the equivariance error of every layer of a network beside a plain CNN, or of the local
/// frames.
#[derive(Debug, Args)]
pub(crate) struct Equivariance {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network [default: random weights]
    #[arg(conflicts_with = "pose")]
    run: Option<PathBuf>,
    /// Architecture with random weights: small, wide, blocks, resnet18, resnet16, wrn16-8 or photos
    #[arg(long, value_name = "NAME", default_value = "small", conflicts_with_all = ["run", "pose"],
        value_parser = arch)]
    arch: Architecture,
    /// Measure the local frames instead
    #[arg(long)]
    pose: bool,
    /// With --pose: a folder of photographs to measure on as well; its subfolder test,
    /// if it has one
    #[arg(long, value_name = "DIR", requires = "pose")]
    data: Option<PathBuf>,
    /// Images: mnist, smooth (drawn, not warped) or a folder of image files; with --pose
    /// their number [default: mnist; with --pose 400]
    #[arg(long, value_name = "mnist|smooth|DIR|N", value_parser = images)]
    images: Option<ImagesChoice>,
    /// Number of images [default: 40 digits, 3 smooth images, 4 files]
    #[arg(long, value_name = "N", conflicts_with = "pose",
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: Option<u16>,
    /// Positions compared per transform, one forward pass each
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "pose",
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    positions: u16,
    /// Rotations over the circle, rounded up to a multiple of 4
    #[arg(long, value_name = "N", default_value_t = 12, conflicts_with = "pose",
        value_parser = clap::value_parser!(u16).range(1..=360))]
    angles: u16,
    /// Run of a trained CNN for comparison [default: the same weights without frames]
    #[arg(long, value_name = "RUN", conflicts_with = "pose")]
    cnn: Option<PathBuf>,
    /// Seed of random weights and smooth images; with --pose of transforms and positions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for equivariance.json, angle.svg and scale.svg
    #[arg(short, long, value_name = "DIR", conflicts_with = "pose")]
    output: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// The value of `--images`.
#[derive(Debug, Clone, PartialEq)]
enum ImagesChoice {
    Mnist,
    Smooth,
    Folder(PathBuf),
    Number(u32),
}

fn images(text: &str) -> Result<ImagesChoice, String> {
    Ok(match (text, text.parse()) {
        ("mnist", _) => ImagesChoice::Mnist,
        ("smooth", _) => ImagesChoice::Smooth,
        (_, Ok(number)) if !(1..=MAX_IMAGES).contains(&number) => {
            return Err(format!("expected 1 to {MAX_IMAGES} images, got {number}"));
        }
        (_, Ok(number)) => ImagesChoice::Number(number),
        _ => ImagesChoice::Folder(text.into()),
    })
}

/// A network, its configuration, and the origin of its weights.
struct Named {
    network: Network,
    config: NetworkConfig,
    weights: String,
    /// Side that photographs are resized to.
    side: usize,
}

/// The same for a network that was not trained on photographs.
const SIDE: usize = 96;

impl Named {
    fn of_run(path: &Path) -> Result<Self, LabError> {
        let (network, training) = load(path)?;
        let config = training.network()?;
        let side = training.image_folder.map_or(SIDE, |photographs| photographs.size);
        Ok(Self { network, config, weights: path.display().to_string(), side })
    }

    /// Random weights, for images of `side` pixels: the range of scales grows with them.
    fn random(arch: Architecture, seed: u64, side: usize) -> Result<Self, LabError> {
        let device = inference_device();
        device.seed(seed);
        let mut config = arch.config(1, 10);
        config.pose = config.pose.enlarged(side as f64 / CANVAS as f64);
        let network = config.init(&device)?;
        // Burn initialises weights on first access: now.
        Weights::of(&network);
        Ok(Self { network, config, weights: format!("random weights, seed {seed}"), side: SIDE })
    }

    fn subject(&self) -> Subject<'_> {
        Subject { network: &self.network, config: &self.config, weights: &self.weights }
    }
}

impl Equivariance {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.pose {
            return self.lemma();
        }
        let result = with_threads(self.threads.count(), || self.measure())??;
        if let Some(folder) = &self.output {
            create_folder(folder)?;
            let json = serde_json::to_string_pretty(&result)?;
            atomic_write(&folder.join("equivariance.json"), json.as_bytes())?;
            for (name, chart) in [("angle", result.angle_chart()), ("scale", result.scale_chart())]
            {
                atomic_write(&folder.join(format!("{name}.svg")), chart.svg_file().as_bytes())?;
            }
        }
        if self.json { print_json(&result) } else { print(&result.to_string()) }
    }

    fn measure(&self) -> Result<EquivarianceResult, LabError> {
        let run = self.run.as_deref().map(Named::of_run).transpose()?;
        let scenes = self.scenes(run.as_ref().map_or(SIDE, |run| run.side))?;
        let measured = match run {
            Some(run) => run,
            None => Named::random(self.arch, self.seed, scenes.side())?,
        };
        let cnn = self.cnn.as_deref().map(Named::of_run).transpose()?;
        let (angles, positions) = (self.angles.into(), self.positions.into());
        let plan = Plan { angles, positions, ..Plan::default() };
        let cnn = cnn.as_ref().map(Named::subject);
        measure_equivariance(measured.subject(), cnn, &scenes, plan)
    }

    /// The images; photographs have `side` pixels.
    fn scenes(&self, side: usize) -> Result<Scenes, LabError> {
        let count = |default: usize| self.count.map_or(default, usize::from);
        match &self.images {
            None | Some(ImagesChoice::Mnist) => Scenes::mnist(count(40)),
            Some(ImagesChoice::Number(number)) => Scenes::mnist(*number as usize),
            Some(ImagesChoice::Smooth) => Scenes::smooth(count(3), self.seed),
            Some(ImagesChoice::Folder(folder)) => {
                let test = folder.join("test");
                let folder = if test.is_dir() { &test } else { folder };
                Scenes::folder(folder, count(4), side)
            }
        }
    }

    fn lemma(&self) -> Result<(), Failure> {
        let images = match &self.images {
            None => LEMMA_IMAGES,
            Some(ImagesChoice::Number(number)) => *number,
            Some(_) => {
                let message = "with --pose, --images is the number of images";
                wrong_usage(ErrorKind::InvalidValue, message)
            }
        };
        let (data, seed, json) = (self.data.as_deref(), self.seed, self.json);
        PoseLemma { data, images, seed, json }.run()
    }
}
