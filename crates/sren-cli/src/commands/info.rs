//! `sren info`: what a run's network is made of and how it was trained.

use std::path::PathBuf;

use clap::Args;
use sren::models::LayerGeometry;
use sren_lab::inference::{BUNDLED, Model};

use crate::Failure;
use crate::output::print;

/// Show the parameters, multiply-adds, layers and training history of a run.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The folder of a run; mnist-sren is the network that comes with the program
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
        text.push_str("layer                     output       parameters   mega multiply-adds\n");
        for LayerGeometry { name, output: [h, w, c], parameters, multiply_adds, .. } in
            geometry.layers()
        {
            let mega = *multiply_adds as f64 * 1e-6;
            let output = format!("{h}x{w}x{c}");
            text.push_str(&format!("{name:<24}  {output:<11} {parameters:>11}   {mega:>10.3}\n"));
        }
        text.push_str(&format!("\n{} of {} epochs", metrics.len(), config.epochs));
        if !metrics.is_empty() {
            text.push_str("\nepoch     loss   accuracy   validation   images/s");
        }
        for m in &metrics {
            text.push_str(&format!(
                "\n{:>5}  {:>7.4}   {:>6.2} %     {:>6.2} %   {:>8.0}",
                m.epoch, m.loss, m.accuracy, m.validation_accuracy, m.images_per_second
            ));
        }
        print(&text)
    }
}
