//! The networks of a service: the one that is served, and a plain CNN that the page shows beside it.

use std::path::Path;

use burn::tensor::Tensor;
use sren::Equivariance;
use sren::equivariance::network_layers;
use sren::models::{Network, NetworkConfig, parameter_count};
use sren_data::{Mnist, Split};

use crate::equivariance::{NO_FRAMES, plain_companion};
use crate::error::{LabError, Result};
use crate::features::fine_network;
use crate::inference::{BUNDLED_CNN, Model, Predictor, inference_device};

/// The network that is served, and the plain CNN that the page shows beside it.
#[derive(Debug)]
pub struct Networks {
    pub(super) served: Served,
    pub(super) plain: Served,
    /// The test digits, for a network that reads digits.
    pub(super) digits: Option<Mnist>,
}

/// A network, ready to compute.
#[derive(Debug)]
pub(super) struct Served {
    /// The name of its run.
    pub(super) name: String,
    /// Where its weights come from.
    pub(super) weights: &'static str,
    pub(super) predictor: Predictor,
    /// The same on a finer grid, to show its features.
    pub(super) fine: Network,
    /// The names of its layers, first to last.
    pub(super) layers: Vec<String>,
    pub(super) parameters: usize,
    pub(super) architecture: String,
}

impl Networks {
    /// The network of the run in `path`, and as the plain CNN that of the run in `cnn`. Without one it
    /// is the bundled CNN for digits, and for other classes the same weights without frames.
    pub fn open(path: &Path, cnn: Option<&Path>) -> Result<Self> {
        let model = Model::open(path)?;
        let plain = match cnn {
            Some(cnn) => Served::new(name(cnn), "trained", Model::open(cnn)?)?,
            None => {
                let bundled = Model::open(Path::new(BUNDLED_CNN))?;
                if bundled.config.classes() == model.config.classes() {
                    Served::new(BUNDLED_CNN.into(), "trained", bundled)?
                } else {
                    let network = plain_companion(&model.network, &model.config.network()?)?;
                    let config = model.config.clone();
                    Served::new(name(path), NO_FRAMES, Model { network, config })?
                }
            }
        };
        let digits = match model.config.image_folder {
            None => Some(Mnist::load(Split::Test)?),
            Some(_) => None,
        };
        let served = Served::new(name(path), "trained", model)?;
        let [expected, got] = [&served, &plain].map(|of| of.predictor.classes().join(", "));
        if expected != got {
            return Err(LabError::invalid(&plain.name, format!("the classes {expected}"), got));
        }
        Ok(Self { served, plain, digits })
    }

    /// The name of the network that is served.
    pub fn name(&self) -> &str {
        &self.served.name
    }
}

/// The name of a run: that of its folder, without the way to it.
fn name(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    absolute.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Served {
    fn new(name: String, weights: &'static str, model: Model) -> Result<Self> {
        let config: NetworkConfig = model.config.network()?;
        let [height, width] = model.config.preprocessing().padding.canvas;
        let shape = [1, height, width, config.image_channels];
        let blank = Tensor::zeros(shape, &inference_device());
        let maps = network_layers(&model.network, blank)?;
        Ok(Self {
            name,
            weights,
            fine: fine_network(&model.network, &config, height.max(width))?,
            layers: maps.into_iter().map(|(name, _)| name).collect(),
            parameters: parameter_count(&model.network),
            architecture: model.config.arch.clone(),
            predictor: Predictor::new(model),
        })
    }

    /// Whether it computes in local frames.
    pub(super) fn has_frames(&self) -> bool {
        self.group() != Equivariance::None
    }

    /// Its equivariance group.
    pub(super) fn group(&self) -> Equivariance {
        self.predictor.network().equivariance()
    }
}
