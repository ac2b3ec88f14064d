//! Training as a user runs it: it learns, goes on where it stopped, and names what is broken.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{assert_fails, command, nothing, sren, succeeds};

/// A run that takes seconds; the seed and thread count are the same for all.
fn tiny(out: &str) -> Vec<&str> {
    let mut arguments = vec!["train", "--preset", "quick", "--images", "192", "--epochs", "2"];
    arguments.extend(["--batch", "32", "--threads", "2", "--test-images", "16", "--out", out]);
    arguments
}

fn resume(path: &Path) -> Output {
    let run = path.to_str().unwrap();
    sren(&["train", "--resume", run, "--threads", "2", "--test-images", "16"])
}

fn accuracy(evaluation: &Value, set: &str) -> f64 {
    evaluation["sets"][set]["accuracy"].as_f64().unwrap()
}

#[test]
fn the_default_preset_draws_positions_and_asks_for_the_turn_and_other_networks_do_not() {
    let few = ["--images", "400", "--epochs", "1", "--batch", "40", "--threads", "2"];
    for (name, network, asks) in
        [("default", &[][..], true), ("other", &["--arch", "blocks"], false)]
    {
        let path = nothing(name);
        let run = path.to_str().unwrap();
        let more = ["--test-images", "10", "--out", run];
        succeeds(&sren(&[&["train"], network, &few[..], &more[..]].concat()));
        let config = fs::read_to_string(path.join("config.toml")).unwrap();
        assert_eq!(config.contains("positions = 16"), asks, "{config}");
        assert_eq!(config.contains("[network.orientation]"), asks, "{config}");
        let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        let epoch: Value = serde_json::from_str(metrics.trim()).unwrap();
        assert!(epoch["loss"].is_number(), "{metrics}");
    }
}

#[test]
fn a_tiny_run_learns_and_holds_on_turned_digits_and_broken_runs_are_named() {
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
    // By the images that were held out, the kept epoch is as good as it was when it was kept.
    let held_out = ["eval", run, "--held-out", "--sets", "upright", "--json"];
    let held_out: Value = serde_json::from_str(&succeeds(&sren(&held_out))).unwrap();
    assert_eq!(held_out["sets"]["upright"]["n"], 250);
    let told: Vec<f64> =
        epochs.iter().map(|epoch| epoch["validation_accuracy"].as_f64().unwrap()).collect();
    assert!(told.contains(&accuracy(&held_out, "upright")), "{held_out} {metrics}");

    let quarter = ["eval", run, "--images", "300", "--angle", "-90", "--json"];
    let quarter: Value = serde_json::from_str(&succeeds(&sren(&quarter))).unwrap();
    // A quarter turn moves pixels and nothing else.
    assert!((accuracy(&quarter, "angle -90 scale 1") - upright).abs() < 1.0, "{quarter}");
    let info = succeeds(&sren(&["info", run]));
    assert!(info.contains("81514 parameters") && info.contains("2 of 2 epochs"), "{info}");

    // The folder is taken.
    assert_fails(&tiny(run), &["learns", "expected a folder without a run"]);
    // Broken files are named, and nothing is written.
    let state = path.join("checkpoint/state.safetensors");
    let whole = fs::read(&state).unwrap();
    let resume = ["train", "--resume", run];
    fs::write(&state, &whole[..whole.len() / 2]).unwrap();
    assert_fails(&resume, &["state.safetensors", "expected a whole file of this run"]);
    let mut flipped = whole.clone();
    let last = flipped.len() - 3;
    flipped[last] ^= 1;
    fs::write(&state, &flipped).unwrap();
    assert_fails(&resume, &["state.safetensors", "do not fit their checksum"]);
    assert_eq!(fs::read(&state).unwrap(), flipped);
    let model = path.join("model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() - 1]).unwrap();
    assert_fails(&["eval", run], &["model.safetensors", "expected a whole file of this run"]);
    fs::write(path.join("config.toml"), "arch = 3").unwrap();
    assert_fails(&["info", run], &["config.toml", "expected a config, got line 1"]);
    assert_fails(&["eval", "no/such/run"], &["no/such/run"]);
}

#[test]
fn the_same_network_that_follows_nothing_is_lost_on_turned_digits() {
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
fn the_table_has_its_rows_and_does_not_train_what_is_there() {
    let path = nothing("table");
    let out = path.to_str().unwrap();
    let mut arguments = vec!["table", "--preset", "quick", "--rows", "cnn,sren", "--seeds", "2"];
    arguments.extend(["--images", "128", "--test-images", "16", "--threads", "2", "-o", out]);
    let text = succeeds(&sren(&arguments));
    for part in ["cnn", "sren, 2 seeds", "spread", "the paper's", "92.30", "33.56"] {
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
}

#[cfg(unix)]
#[test]
fn a_run_that_was_stopped_or_killed_ends_as_if_it_never_had_been() {
    let whole = nothing("whole");
    succeeds(&sren(&tiny(whole.to_str().unwrap())));

    let killed = nothing("killed");
    let mut child = command(&tiny(killed.to_str().unwrap())).spawn().unwrap();
    wait_for(&killed.join("checkpoint/state.safetensors"), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    succeeds(&resume(&killed));

    let stopped = nothing("stopped");
    let mut child = command(&tiny(stopped.to_str().unwrap())).spawn().unwrap();
    wait_for(&stopped.join("checkpoint/state.safetensors"), &mut child);
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("sren train --resume"), "{said}");
    assert!(said.contains("epoch 1:") && !said.contains("epoch 2:"), "{said}");
    succeeds(&resume(&stopped));

    for file in ["model.safetensors", "checkpoint/state.safetensors"] {
        let expected = fs::read(whole.join(file)).unwrap();
        for other in [&killed, &stopped] {
            assert!(fs::read(other.join(file)).unwrap() == expected, "{other:?} {file}");
        }
    }
}

fn wait_for(path: &Path, child: &mut Child) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{path:?} does not appear");
        assert!(child.try_wait().unwrap().is_none(), "ended without {path:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn wrong_usage_is_code_2_and_wrong_recipes_are_named() {
    for arguments in [
        &["train", "--preset", "slow"][..],
        &["train", "--model", "resnet"],
        &["train", "--arch", "resnet17"],
        &["train", "--resume", "x", "--epochs", "3"],
        &["eval", "x", "--sets", "q"],
        &["eval", "x", "--sets", "r", "--angle", "3"],
        &["info", "a", "b"],
        &["table", "--rows", "sren,vit"],
        &["table", "--seeds", "0"],
    ] {
        assert_eq!(sren(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let out = nothing("refused");
    let out = out.to_str().unwrap();
    assert_fails(&["train", "--epochs", "0", "--out", out], &["at least 1 epoch"]);
    assert_fails(&["train", "--config", "no/such.toml", "--out", out], &["no/such.toml"]);
    assert_fails(&["train", "--images", "60000", "--out", out], &["training split"]);
    assert_fails(&["train", "--resume", out], &["expected the folder of a run, got nothing there"]);
    assert!(!Path::new(out).exists());
}
