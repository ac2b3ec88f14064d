//! Training that starts from the weights of another run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sren::Weights;
use sren::models::Network;

use crate::error::{LabError, Result};
use crate::inference::Model;

/// The run whose weights another one starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FineTuning {
    /// Its folder, or the bundled model.
    pub from: PathBuf,
    /// Whether the backbone keeps its weights and only the head learns. Batch norm still follows the
    /// new images.
    #[serde(default)]
    pub freeze_backbone: bool,
}

impl FineTuning {
    /// From the run in `from`.
    pub fn new(from: PathBuf, freeze_backbone: bool) -> Self {
        Self { from, freeze_backbone }
    }

    /// `network` with the weights of the run: all of them where the classes are the same, those of
    /// the backbone where they are others.
    pub(super) fn start(&self, network: Network, classes: &[String]) -> Result<Network> {
        let model = Model::open(&self.from)?;
        let same_classes = model.config.classes() == classes;
        let mut weights = Weights::of(&network);
        for (name, tensor) in Weights::of(&model.network).tensors {
            if same_classes || is_of_backbone(&name) {
                weights.tensors.insert(name, tensor);
            }
        }
        weights.apply(network).map_err(|e| {
            let name = self.from.display().to_string();
            LabError::invalid(name, "a network of the same layout", e.to_string())
        })
    }
}

/// Whether a weight is the backbone's, in either branch.
fn is_of_backbone(name: &str) -> bool {
    name.split('.').any(|part| part == "backbone")
}
