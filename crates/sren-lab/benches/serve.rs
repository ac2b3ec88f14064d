//! Times single passes on request, for scripts that interleave them with other programs.
//!
//! Reads lines from standard input, does what they ask once and answers with milliseconds:
//!
//! - `CONTENDER PASS LAYER`: a pass of a layer, with `kernel`, `module` or `burn`, `forward` or
//!   `both`, a number into the list of layers;
//! - `step MODEL BATCH`: a training step of the ResNet-18, Adam included, with the equivariance group
//!   `sren`, `so2`, `scale` or `cnn`;
//! - `infer RUN FILE BATCH`: the logits of the first BATCH images of a file of f32, `[n, h, w, c]`, by
//!   the model of a run.
//!
//! The list of layers is printed first, as one line of JSON. `RAYON_NUM_THREADS` sets the threads.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use burn::tensor::{Tensor, TensorData};
use sren::models::Architecture;
use sren_lab::bench::{Contender, LAYERS, Pass, TrainingStep, once, prepare};
use sren_lab::inference::{Model, inference_device};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().all(|argument| argument != "--serve") {
        println!("to be started by scripts/compare_torch.py");
        return Ok(());
    }
    println!("{}", serde_json::to_string(&LAYERS)?);
    let mut ready: HashMap<String, Timed> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if !ready.contains_key(&line) {
            let mut timed = prepared(&line)?;
            timed()?; // warms up
            ready.insert(line.clone(), timed);
        }
        let timed = ready.get_mut(&line).ok_or("nothing prepared")?;
        println!("{}", timed()?);
    }
    Ok(())
}

/// Does what was asked for once and returns milliseconds.
type Timed = Box<dyn FnMut() -> Result<f64, Box<dyn std::error::Error>>>;

fn prepared(line: &str) -> Result<Timed, Box<dyn std::error::Error>> {
    let words: Vec<&str> = line.split(' ').collect();
    if let ["infer", run, file, batch] = words[..] {
        return inference(run, file, batch.parse()?);
    }
    let [contender, pass, number] = words[..] else {
        return Err(format!("expected CONTENDER PASS LAYER or step MODEL BATCH, got {line}").into());
    };
    let number: usize = number.parse()?;
    if contender == "step" {
        let config = Architecture::Resnet18.config_for(pass.parse()?, 1, 10);
        let mut step = TrainingStep::new(&config, number, 0)?;
        return Ok(Box::new(move || Ok(step.run()?.iter().sum())));
    }
    let contender = match contender {
        "kernel" => Contender::Kernel,
        "module" => Contender::Module,
        _ => Contender::BurnConv2d,
    };
    let pass = if pass == "forward" { Pass::Forward } else { Pass::ForwardBackward };
    let layer = LAYERS.get(number).ok_or("no such layer")?;
    let subject = prepare(layer, contender, pass)?;
    Ok(Box::new(move || Ok(once(&*subject))))
}

fn inference(run: &str, file: &str, batch: usize) -> Result<Timed, Box<dyn std::error::Error>> {
    let model = Model::open(Path::new(run))?;
    let [height, width] = model.config.preprocessing().padding.canvas;
    let shape = [batch, height, width, model.config.preprocessing().letterbox.channels];
    let bytes = std::fs::read(file)?;
    let values = bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value));
    let values: Vec<f32> = values.take(shape.iter().product()).collect();
    let images: Tensor<4> = Tensor::from_data(TensorData::new(values, shape), &inference_device());
    Ok(Box::new(move || {
        let start = Instant::now();
        // Reading the logits waits for them.
        model.network.forward(images.clone())?.into_data();
        Ok(1e3 * start.elapsed().as_secs_f64())
    }))
}
