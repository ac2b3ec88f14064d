//! `sren info`: the layers of a run's network and its training history.

use std::path::PathBuf;

use clap::Args;
use sren::models::LayerGeometry;
use sren_data::Split;
use sren_lab::inference::{BUNDLED, Model, inference_device};
use sren_lab::training::TrainingConfig;
use sren_lab::{ActiveShare, TextTable, active_shares, grouped};

use crate::Failure;
use crate::output::print;

/// Show the parameters, multiply-adds, layers and training history of a run.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network
    #[arg(default_value = BUNDLED)]
    run: PathBuf,
}

/// Test images that computed positions are counted on.
const IMAGES: usize = 100;

impl Info {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (config, metrics) = Model::history(&self.run)?;
        let canvas @ [height, width] = config.preprocessing().padding.canvas;
        let geometry = config.network()?.geometry(canvas)?;
        let shares = shares(&config)?;
        let suffix = config.augment.suffix();
        let mut text = format!(
            "{} {}{suffix}: {} parameters, {:.4} GFLOP (multiply-adds) at {height}x{width}",
            config.arch,
            config.model,
            grouped(geometry.parameters()),
            geometry.multiply_adds() as f64 * 1e-9,
        );
        let computed = |layer: &LayerGeometry| {
            let [h, w, _] = layer.output;
            let share = shares.iter().find(|(grid, _)| *grid == [h, w]);
            // Branches are plain CNNs.
            let is_plain =
                layer.name.split('.').any(|part| ["branch", "log_polar"].contains(&part));
            let share = share.filter(|_| !is_plain);
            layer.multiply_adds as f64 * share.map_or(1.0, |(_, share)| *share)
        };
        if !shares.is_empty() {
            let gflop = geometry.layers().iter().map(computed).sum::<f64>() * 1e-9;
            text.push_str(&format!(
                ",\n{gflop:.4} of them computed: at positions with a pose, mean of {IMAGES} test images"
            ));
        }
        text.push_str("\n\n");
        let headers = ["layer", "output", "parameters", "mega multiply-adds", "computed"];
        let mut layers = TextTable::new(headers).left(1);
        for layer in geometry.layers() {
            let [h, w, c] = layer.output;
            layers.row([
                layer.name.clone(),
                format!("{h}x{w}x{c}"),
                grouped(layer.parameters),
                format!("{:.3}", layer.multiply_adds as f64 * 1e-6),
                format!("{:.3}", computed(layer) * 1e-6),
            ]);
        }
        text.push_str(&format!("{layers}\n\n{} of {} epochs", metrics.len(), config.epochs));
        let mut epochs = TextTable::new(["epoch", "loss", "accuracy", "validation", "images/s"]);
        for m in &metrics {
            epochs.row([
                m.epoch.to_string(),
                format!("{:.4}", m.loss),
                format!("{:.2} %", m.accuracy),
                format!("{:.2} %", m.validation_accuracy),
                format!("{:.0}", m.images_per_second),
            ]);
        }
        if !metrics.is_empty() {
            text.push_str(&format!("\n{epochs}"));
        }
        print(&text)
    }
}

/// The shares of positions that are computed; none if the run's images are no longer there.
fn shares(config: &TrainingConfig) -> Result<Vec<ActiveShare>, Failure> {
    let Ok(tested) = config.load(Split::Test) else { return Ok(Vec::new()) };
    // Poses do not depend on weights.
    let network = config.network()?.init(&inference_device())?;
    Ok(active_shares(&network, &tested.images, IMAGES)?)
}
