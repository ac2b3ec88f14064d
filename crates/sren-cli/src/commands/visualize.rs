//! `sren visualize`: features of a transformed image, transformed back.

use std::path::{Path, PathBuf};

use clap::Args;
use sren::models::{Network, NetworkConfig};
use sren::{About, Image, Interpolation, Similarity, Weights, warp};
use sren_data::{CANVAS, Letterbox, Padding, read_reduced};
use sren_lab::equivariance::{NO_FRAMES, plain_companion};
use sren_lab::inference::{Model, Preprocessing, inference_device};
use sren_lab::threads::with_threads;
use sren_lab::{LabError, Shown, atomic_write, feature_picture};

use super::eval::load;
use super::pose;
use crate::Failure;
use crate::arguments::Threads;
use crate::output::{create_folder, print};

/// An image under a transform.
type View = Box<dyn Fn(&Similarity) -> Result<Image, LabError> + Send + Sync>;

/// Preprocessing of a file for a network for digits: grey, its longer side resized to 96 pixels.
const FILE: Preprocessing = Preprocessing {
    letterbox: Letterbox { side: 96, channels: 1, mean_colour: true },
    padding: Padding { canvas: [192, 192], circular_mask: true },
};

/// Draw an image rotated and scaled, its local frames, and the features of chosen layers transformed
/// back, beside a plain CNN. Equivariant features look the same in every column.
#[derive(Debug, Args)]
pub(crate) struct Visualize {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network
    run: PathBuf,
    /// An image file, or mnist:N for digit N of the bundled test set
    image: String,
    /// Layers: stem, blocks.0 and so on, or layers.0 and so on, projection [default: the first and the last]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    layers: Vec<String>,
    /// Run of a trained CNN for comparison [default: the same weights without frames]
    #[arg(long, value_name = "RUN")]
    cnn: Option<PathBuf>,
    /// Random weights instead of the trained ones
    #[arg(long, conflicts_with = "cnn")]
    random: bool,
    /// Folder for visualize.png
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    #[command(flatten)]
    threads: Threads,
}

impl Visualize {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let view = self.view()?;
        let work = || -> Result<Vec<u8>, LabError> {
            let (network, config) = self.network(&self.run)?;
            let (cnn, cnn_config) = match &self.cnn {
                Some(path) => self.network(path)?,
                None => (plain_companion(&network, &config)?, config.clone()),
            };
            let weights = if self.random { "random weights" } else { "trained" };
            let cnn_weights = if self.cnn.is_some() { "trained" } else { NO_FRAMES };
            let title = network.equivariance().name().to_uppercase();
            let networks = [
                Shown { title: &title, network: &network, config: &config, weights },
                Shown { title: "CNN", network: &cnn, config: &cnn_config, weights: cnn_weights },
            ];
            feature_picture(view, &networks, &self.layers)
        };
        let png = with_threads(self.threads.count(), work)??;
        create_folder(&self.output)?;
        let path = self.output.join("visualize.png");
        atomic_write(&path, &png)?;
        print(&format!("picture: {}", path.display()))
    }

    /// The image under a transform: a digit on its canvas, a file preprocessed as a photograph.
    fn view(&self) -> Result<View, Failure> {
        if self.image.starts_with("mnist:") {
            let digit = pose::load(&self.image, CANVAS)?.image;
            return Ok(Box::new(move |transform| {
                Ok(warp(&digit, transform, About::Centre, Interpolation::Cubic))
            }));
        }
        let (config, _) = Model::history(&self.run)?;
        let preprocessing = match config.image_folder {
            Some(_) => config.preprocessing(),
            None => FILE,
        };
        let image = read_reduced(Path::new(&self.image), preprocessing.letterbox.side)?.image;
        Ok(Box::new(move |transform| preprocessing.apply(&image, transform)))
    }

    fn network(&self, path: &Path) -> Result<(Network, NetworkConfig), LabError> {
        let (network, training) = load(path)?;
        let config = training.network()?;
        if !self.random {
            return Ok((network, config));
        }
        let device = inference_device();
        device.seed(training.seed);
        let network = config.init(&device)?;
        // Burn initialises weights on first access: now.
        Weights::of(&network);
        Ok((network, config))
    }
}
