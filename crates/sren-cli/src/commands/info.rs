//! `sren info`: the layers of a run's network and its training history.

use std::path::PathBuf;

use clap::Args;
use sren::models::LayerGeometry;
use sren_lab::TextTable;
use sren_lab::inference::{BUNDLED, Model};

use crate::Failure;
use crate::output::print;

/// Show the parameters, multiply-adds, layers and training history of a run.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Folder of a run, or mnist-sren for the bundled network
    #[arg(default_value = BUNDLED)]
    run: PathBuf,
}

impl Info {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (config, metrics) = Model::history(&self.run)?;
        let canvas @ [height, width] = config.preprocessing().padding.canvas;
        let geometry = config.network()?.geometry(canvas)?;
        let plus = if config.augment { ", augmented" } else { "" };
        let mut text = format!(
            "{} {}{plus}: {} parameters, {:.4} GFLOP (multiply-adds) at {height}x{width}\n\n",
            config.arch,
            config.model,
            geometry.parameters(),
            geometry.multiply_adds() as f64 * 1e-9,
        );
        let mut layers =
            TextTable::new(["layer", "output", "parameters", "mega multiply-adds"]).left(1);
        for LayerGeometry { name, output: [h, w, c], parameters, multiply_adds, .. } in
            geometry.layers()
        {
            layers.row([
                name.clone(),
                format!("{h}x{w}x{c}"),
                parameters.to_string(),
                format!("{:.3}", *multiply_adds as f64 * 1e-6),
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
