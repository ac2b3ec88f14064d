//! Networks and weights of runs, for other frameworks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use sren::models::{Architecture, NetworkConfig};
use sren::{Equivariance, Weights};
use sren_lab::inference::{Model, inference_device};
use sren_lab::training::{Preset, RunFolder, TrainingConfig};

use crate::arrays::order;
use crate::compute::compute;
use crate::failure::{Failure, Result};

/// Arrays by name.
type Arrays<'py> = BTreeMap<String, Bound<'py, PyArrayDyn<f32>>>;

/// A network by name, as JSON.
#[pyfunction]
pub(crate) fn network_config(
    arch: &str,
    group: &str,
    channels: usize,
    classes: usize,
) -> Result<String> {
    let (arch, group): (Architecture, Equivariance) = (arch.parse()?, group.parse()?);
    let config = arch.config_for(group, channels, classes);
    // Sizes are checked before anything is made of them.
    config.geometry([64, 64])?;
    json(&config)
}

/// The network of a run as JSON, and its weights.
#[pyfunction]
pub(crate) fn open_run(py: Python<'_>, path: PathBuf) -> Result<(String, Arrays<'_>)> {
    let Model { network, config } = compute(py, || Model::open(&path))?;
    let array = |(name, (shape, values)): (String, (Vec<usize>, Vec<f32>))| -> Result<_> {
        Ok((name, PyArray1::from_vec(py, values).reshape(shape)?))
    };
    let weights = Weights::of(&network).tensors.into_iter().map(array).collect::<Result<_>>()?;
    Ok((json(&config.network()?)?, weights))
}

/// Writes weights of `network` into the run in `path`. If there is none, it is made: like the run
/// `like`, or one on digits.
#[pyfunction]
pub(crate) fn save_run(
    py: Python<'_>,
    path: PathBuf,
    like: Option<PathBuf>,
    network: &str,
    weights: BTreeMap<String, PyReadonlyArrayDyn<'_, f32>>,
) -> Result<()> {
    let network: NetworkConfig = serde_json::from_str(network).map_err(Failure::value)?;
    let mut values = Weights::default();
    for (name, array) in weights {
        let (shape, data) = (array.shape().to_vec(), array.as_slice().map_err(order)?.to_vec());
        if data.iter().any(|value| !value.is_finite()) {
            let got = "values that are no numbers";
            return Err(Failure::value(format!("{name}: expected finite weights, got {got}")));
        }
        values.tensors.insert(name, (shape, data));
    }
    compute(py, || write(&path, like.as_deref(), network, &values))
}

fn write(
    path: &Path,
    like: Option<&Path>,
    network: NetworkConfig,
    weights: &Weights,
) -> Result<()> {
    weights.apply(network.init(&inference_device())?)?;
    let exists = path.join("config.toml").exists();
    let source = if exists { Some(path) } else { like };
    let config = match source {
        Some(source) => {
            let (config, _) = Model::history(source)?;
            if json(&config.network()?)? != json(&network)? {
                let name = source.display();
                return Err(Failure::value(format!(
                    "{name}: expected a run with the same network, got another one"
                )));
            }
            config
        }
        None => on_digits(network)?,
    };
    let folder = match exists {
        true => {
            let (mut folder, _) = RunFolder::open(path)?;
            folder.lock()?;
            folder
        }
        false => RunFolder::create(path, &config)?,
    };
    Ok(folder.save_model(weights)?)
}

/// A run on digits with `network`.
fn on_digits(network: NetworkConfig) -> Result<TrainingConfig> {
    let mut config = Preset::Paper.config()?;
    config.model = network.equivariance.name().into();
    config.network = Some(network);
    config.check("save")?;
    Ok(config)
}

fn json(config: &NetworkConfig) -> Result<String> {
    serde_json::to_string(config).map_err(Failure::value)
}
