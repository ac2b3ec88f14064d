//! Times single passes on request, for scripts that interleave them with other programs.
//!
//! Reads lines `CONTENDER PASS LAYER` from standard input (`kernel`, `module` or `burn`; `forward`
//! or `both`; a number into the list of layers), does that pass once and answers with milliseconds.
//! The list of layers is printed first, as one line of JSON. `RAYON_NUM_THREADS` sets the threads.

use std::collections::HashMap;
use std::io::BufRead;

use sren_lab::bench::{Contender, LAYERS, Pass, once, prepare};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().all(|argument| argument != "--serve") {
        println!("to be started by scripts/compare_torch.py");
        return Ok(());
    }
    println!("{}", serde_json::to_string(&LAYERS)?);
    let mut ready = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if !ready.contains_key(&line) {
            let words: Vec<&str> = line.split(' ').collect();
            let [contender, pass, layer] = words[..] else {
                return Err(format!("expected CONTENDER PASS LAYER, got {line}").into());
            };
            let contender = match contender {
                "kernel" => Contender::Kernel,
                "module" => Contender::Module,
                _ => Contender::BurnConv2d,
            };
            let pass = if pass == "forward" { Pass::Forward } else { Pass::ForwardBackward };
            let layer = LAYERS.get(layer.parse::<usize>()?).ok_or("no such layer")?;
            let subject = prepare(layer, contender, pass)?;
            subject(); // warms up
            ready.insert(line.clone(), subject);
        }
        println!("{}", once(&*ready[&line]));
    }
    Ok(())
}
