//! Training as a user runs it: it learns, resumes where it stopped, and reports broken files.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{assert_fails, nothing, sren, succeeds};

/// A run that takes seconds; the seed and thread count are the same for all.
fn tiny(out: &str) -> Vec<&str> {
    let mut arguments = vec!["train", "--preset", "quick", "--images", "192", "--epochs", "2"];
    arguments.extend(["--batch", "32", "--threads", "2", "--test-images", "16", "--out", out]);
    arguments
}

fn accuracy(evaluation: &Value, set: &str) -> f64 {
    evaluation["sets"][set]["accuracy"].as_f64().unwrap()
}

#[test]
fn the_default_preset_samples_positions_and_has_an_orientation_head_and_blocks_do_not() {
    let few = ["--images", "400", "--epochs", "1", "--batch", "40", "--threads", "2"];
    for (name, network, expected) in
        [("default", &[][..], true), ("other", &["--arch", "blocks"], false)]
    {
        let path = nothing(name);
        let run = path.to_str().unwrap();
        let more = ["--test-images", "10", "--out", run];
        succeeds(&sren(&[&["train"], network, &few[..], &more[..]].concat()));
        let config = fs::read_to_string(path.join("config.toml")).unwrap();
        assert_eq!(config.contains("positions = 16"), expected, "{config}");
        assert_eq!(config.contains("kind = \"orientation\""), expected, "{config}");
        let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        let epoch: Value = serde_json::from_str(metrics.trim()).unwrap();
        assert!(epoch["loss"].is_number(), "{metrics}");
    }
}

#[test]
fn a_tiny_run_learns_and_is_accurate_on_rotated_digits_and_broken_runs_are_errors() {
    let path = nothing("learns");
    let run = path.to_str().unwrap();
    let mut arguments = vec!["train", "--preset", "quick", "--images", "1000", "--epochs", "2"];
    arguments.extend(["--batch", "32", "--threads", "2", "--test-images", "50", "--out", run]);
    let text = succeeds(&sren(&arguments));
    assert!(text.contains("srt") && text.contains("92.30"), "{text}");

    let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    let epochs: Vec<Value> = metrics.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let loss = |epoch: usize| epochs[epoch]["loss"].as_f64().unwrap();
    assert!(epochs.len() == 2 && loss(1) < 0.8 * loss(0), "{metrics}");

    let arguments = ["eval", run, "--images", "300", "--json"];
    let evaluation: Value = serde_json::from_str(&succeeds(&sren(&arguments))).unwrap();
    assert_eq!(evaluation["model"], "sren");
    assert_eq!(evaluation["parameters"], 81_514);
    assert_eq!(evaluation["sets"]["srt"]["n"], 300);
    let upright = accuracy(&evaluation, "upright");
    assert!(upright > 50.0, "{evaluation}");
    for set in ["r", "s", "srt"] {
        assert!(accuracy(&evaluation, set) > upright - 12.0, "{evaluation}");
    }
    // On the held-out images, the saved epoch is as accurate as in its metrics.
    let held_out = ["eval", run, "--held-out", "--sets", "upright", "--json"];
    let held_out: Value = serde_json::from_str(&succeeds(&sren(&held_out))).unwrap();
    assert_eq!(held_out["sets"]["upright"]["n"], 250);
    let validation: Vec<f64> =
        epochs.iter().map(|epoch| epoch["validation_accuracy"].as_f64().unwrap()).collect();
    assert!(validation.contains(&accuracy(&held_out, "upright")), "{held_out} {metrics}");

    let quarter = ["eval", run, "--images", "300", "--angle", "-90", "--json"];
    let quarter: Value = serde_json::from_str(&succeeds(&sren(&quarter))).unwrap();
    // A rotation by 90 degrees only permutes pixels.
    assert!((accuracy(&quarter, "angle -90 scale 1") - upright).abs() < 1.0, "{quarter}");
    let info = succeeds(&sren(&["info", run]));
    assert!(info.contains("81,514 parameters") && info.contains("2 of 2 epochs"), "{info}");

    // The folder holds a run.
    assert_fails(&tiny(run), &["learns", "expected a folder without a run"]);
    // Errors name broken files, and nothing is written.
    let state = path.join("checkpoint/state.safetensors");
    let whole = fs::read(&state).unwrap();
    let resume = ["train", "--resume", run];
    fs::write(&state, &whole[..whole.len() / 2]).unwrap();
    assert_fails(&resume, &["state.safetensors", "expected a whole file of this run"]);
    let mut flipped = whole.clone();
    let last = flipped.len() - 3;
    flipped[last] ^= 1;
    fs::write(&state, &flipped).unwrap();
    assert_fails(&resume, &["state.safetensors", "content of the checksum"]);
    assert_eq!(fs::read(&state).unwrap(), flipped);
    let model = path.join("model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() - 1]).unwrap();
    assert_fails(&["eval", run], &["model.safetensors", "expected a whole file of this run"]);
    fs::write(path.join("config.toml"), "arch = 3").unwrap();
    assert_fails(&["info", run], &["config.toml", "expected a training configuration, got line 1"]);
    assert_fails(&["eval", "no/such/run"], &["no/such/run"]);
}

#[test]
fn the_same_network_without_equivariance_fails_on_rotated_digits() {
    let path = nothing("cnn");
    let run = path.to_str().unwrap();
    let mut arguments = vec!["train", "--preset", "quick", "--model", "cnn", "--images", "1000"];
    arguments.extend(["--batch", "32", "--threads", "2", "--test-images", "16", "--out", run]);
    succeeds(&sren(&arguments));
    let arguments = ["eval", run, "--sets", "upright,srt", "--images", "300", "--json"];
    let evaluation: Value = serde_json::from_str(&succeeds(&sren(&arguments))).unwrap();
    assert_eq!(evaluation["sets"].as_object().unwrap().len(), 2);
    let (upright, srt) = (accuracy(&evaluation, "upright"), accuracy(&evaluation, "srt"));
    assert!(upright > 50.0 && srt < upright - 25.0, "{evaluation}");
}

#[test]
fn the_table_has_its_rows_and_does_not_train_complete_ones_again() {
    let path = nothing("table");
    let out = path.to_str().unwrap();
    let mut arguments = vec!["table", "--preset", "quick", "--rows", "cnn,sren", "--seeds", "2"];
    arguments.extend(["--images", "128", "--test-images", "16", "--threads", "2", "-o", out]);
    let text = succeeds(&sren(&arguments));
    for part in ["cnn", "sren, 2 seeds", "range over seeds", "paper", "92.30", "33.56"] {
        assert!(text.contains(part), "{text}");
    }
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("sren-2/report.html") && path.join("sren-2/report.html").exists());
    let made = fs::metadata(path.join("sren-2/model.safetensors")).unwrap().modified().unwrap();
    arguments.push("--json");
    let rows: Value = serde_json::from_str(&succeeds(&sren(&arguments))).unwrap();
    assert_eq!(
        (rows[1]["row"].as_str(), rows[1]["seeds"].as_array().unwrap().len()),
        (Some("sren"), 2)
    );
    assert_eq!(rows[0]["paper"][3], 33.56);
    let again = fs::metadata(path.join("sren-2/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(made, again);
    let at = arguments.iter().position(|argument| *argument == "128").unwrap();
    arguments[at] = "96";
    assert_fails(&arguments, &["cnn-1", "training_images of this command"]);
}

#[test]
fn wrong_usage_is_code_2_and_invalid_configurations_are_errors() {
    for arguments in [
        &["train", "--preset", "slow"][..],
        &["train", "--model", "resnet"],
        &["train", "--arch", "resnet17"],
        &["train", "--resume", "x", "--batch", "3"],
        &["eval", "x", "--sets", "q"],
        &["eval", "x", "--sets", "r", "--angle", "3"],
        &["info", "a", "b"],
        &["table", "--rows", "sren,vit"],
        &["table", "--seeds", "0"],
    ] {
        assert_eq!(sren(arguments).status.code(), Some(2), "{arguments:?}");
    }
    absurd_numbers_are_errors();
    let out = nothing("invalid");
    let out = out.to_str().unwrap();
    assert_fails(&["train", "--epochs", "0", "--out", out], &["at least 1 epoch"]);
    assert_fails(&["train", "--config", "no/such.toml", "--out", out], &["no/such.toml"]);
    assert_fails(&["train", "--images", "60000", "--out", out], &["training split"]);
    assert_fails(&["train", "--resume", out], &["expected the folder of a run, got nothing there"]);
    assert_fails(&["eval", "mnist:0-9", "--held-out"], &["--held-out", "mnist:0-9, test digits"]);
    // A network that cannot be made leaves no folder behind.
    let file = nothing("invalid.toml");
    let text = include_str!("../../sren-lab/models/mnist-sren.toml");
    let kernel = text.replacen("kernel = 5", "kernel = 4", 1);
    let cnn = text.replacen("model = \"sren\"", "model = \"cnn\"", 1);
    for (text, message) in [(kernel, "an odd kernel size"), (cnn, "the equivariance of model cnn")]
    {
        fs::write(&file, text).unwrap();
        assert_fails(&["train", "--config", file.to_str().unwrap(), "--out", out], &[message]);
    }
    assert!(!Path::new(out).exists());
}

/// Numbers beyond their bounds are errors that name the number and the bound.
fn absurd_numbers_are_errors() {
    for (arguments, value, bound) in [
        (&["train", "--threads", "100000"][..], "100000", "1024"),
        (&["eval", "--threads", "1025"], "1025", "1024"),
        (&["table", "--seeds", "101"], "101", "100"),
        (&["bench", "--repetitions", "60000"], "60000", "1000"),
        (&["predict", "x", "y", "--top", "65535"], "65535", "10000"),
        (&["equivariance", "--pose", "--images", "4000000000"], "4000000000", "100000"),
        (&["stability", "--images", "0"], "'0'", "at least 1"),
        (&["eval", "--scale", "1e300"], "1e300", "0.01 to 100"),
        (&["eval", "--angles", "0,1e9"], "0,1e9", "36000"),
        (&["train", "--epochs", "2000000"], "2000000", "1000000"),
        (&["train", "--batch", "20000"], "20000", "16384"),
        (&["train", "--images", "1000000000000"], "1000000000000", "60000"),
    ] {
        let output = sren(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{error}");
        assert!(error.contains(value) && error.contains(bound), "{error}");
    }
}
