//! Run folders of version 0.1.0, stopped within their training: they evaluate, predict and resume.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{folder, json, nothing, sren, succeeds, text};

/// The run, and what version 0.1.0 made of it: class and probability of the digit below, then loss
/// and accuracy of the last epoch after it resumed.
const RUNS: [(&str, (&str, f64), f64, f64); 3] = [
    ("patches", ("1", 0.120_293_572), 3.074_967_265, 22.656_25),
    ("canonical", ("4", 0.121_460_832), 6.425_071_597, 15.625),
    ("pooled", ("1", 0.139_281_824), 2.438_999_176, 23.437_5),
];

#[test]
fn old_runs_predict_evaluate_and_resume() {
    let images = folder("images");
    let digit = images.join("digit.png");
    image::GrayImage::from_fn(28, 28, |x, y| {
        image::Luma([if (8..12).contains(&x) && (4..24).contains(&y) { 255 } else { 0 }])
    })
    .save(&digit)
    .unwrap();
    for (name, (class, probability), loss, accuracy) in RUNS {
        let path = copy(name);
        let run = text(&path);
        let prediction = json(&sren(&["predict", run, text(&digit), "--top", "10", "--json"]));
        assert_eq!(prediction["class"], class, "{name}: {prediction}");
        let found = prediction["probability"].as_f64().unwrap();
        assert!((found - probability).abs() < 1e-5, "{name}: {prediction}");
        let top = prediction["top"].as_array().unwrap().iter();
        let sum: f64 = top.map(|class| class["probability"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{name}: {prediction}");
        let evaluation = json(&sren(&["eval", run, "--images", "20", "--json"]));
        assert_eq!(evaluation["sets"]["srt"]["n"], 20, "{name}");

        let resume = ["train", "--resume", run, "--threads", "1", "--test-images", "10"];
        succeeds(&sren(&resume));
        let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        assert_eq!(last["epoch"], 3, "{metrics}");
        // Other processors may sum in another order.
        assert!((last["loss"].as_f64().unwrap() - loss).abs() < 1e-3, "{name}: {last}");
        assert!((last["accuracy"].as_f64().unwrap() - accuracy).abs() < 1.0, "{name}: {last}");
        // What it saves has the present names, and is read again.
        assert_eq!(json(&sren(&["eval", run, "--images", "20", "--json"]))["sets"]["r"]["n"], 20);
    }
}

/// A copy of a run of this folder.
fn copy(name: &str) -> std::path::PathBuf {
    let (from, to) = (Path::new("tests/runs-0.1.0").join(name), nothing(name));
    fs::create_dir_all(to.join("checkpoint")).unwrap();
    let files =
        ["config.toml", "metrics.jsonl", "model.safetensors", "checkpoint/state.safetensors"];
    for file in files {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    to
}
