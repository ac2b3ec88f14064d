//! Times single passes on request, for scripts that interleave them with other programs.
//!
//! Reads lines from standard input, does what they ask once and answers with milliseconds:
//!
//! - `CONTENDER PASS LAYER`: a pass of a layer, with `kernel`, `module` or `burn`, `forward` or
//!   `both`, a number into the list of layers;
//! - `step MODEL BATCH`: a training step of the ResNet-18, Adam included, with the equivariance group
//!   `sren`, `so2`, `scale` or `cnn`.
//!
//! The list of layers is printed first, as one line of JSON. `RAYON_NUM_THREADS` sets the threads.

use std::collections::HashMap;
use std::io::BufRead;

use sren::models::Architecture;
use sren_lab::bench::{Contender, LAYERS, Pass, TrainingStep, once, prepare};

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
