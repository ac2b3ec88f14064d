//! Makes the files of the bundled model from a run: configuration, metrics and the weights in half
//! precision.
//!
//! ```sh
//! cargo run --release -p sren-lab --example bundle -- runs/small-sren-1 crates/sren-lab/models/mnist-sren
//! ```
use std::error::Error;
use std::path::{Path, PathBuf};

use sren::{Precision, Weights};
use sren_lab::atomic_write;
use sren_lab::inference::Model;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, target] = &arguments[..] else { return Err("usage: bundle RUN TARGET".into()) };
    let Model { network, config } = Model::open(Path::new(run))?;
    let weights = Weights::of(&network).to_bytes(Precision::Half)?;
    let metrics = std::fs::read(Path::new(run).join("metrics.jsonl"))?;
    let file = |extension: &str| PathBuf::from(format!("{target}.{extension}"));
    atomic_write(&file("safetensors"), &weights)?;
    atomic_write(&file("jsonl"), &metrics)?;
    atomic_write(&file("toml"), config.to_toml()?.as_bytes())?;
    println!("{}: {} kB of weights", file("safetensors").display(), weights.len() / 1000);
    Ok(())
}
