//! `sren export`: the file runs elsewhere, and what cannot be exported leaves nothing behind.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{assert_fails, folder, json, said, sren, succeeds, text};

/// What `scripts/onnx_environment.sh` installs.
fn environment() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/onnx")
}

/// `scripts/check_onnx.py` with the given arguments; `None`, with a message, where Python's packages
/// or node's are not installed.
fn check(arguments: &[&str], needs: &str) -> Option<Value> {
    let python = environment().join("venv/bin/python");
    let ready = environment().join("venv/ready");
    if !ready.exists() || !environment().join(needs).exists() {
        eprintln!("skipped: scripts/onnx_environment.sh has not been run");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/check_onnx.py");
    let output = Command::new(python)
        .arg(script)
        .args(["--json", "--sren", env!("CARGO_BIN_EXE_sren")])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{} {}",
        said(&output),
        String::from_utf8_lossy(&output.stdout)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_bundled_network_gives_the_same_in_another_engine() {
    let folder = folder("check");
    let file = folder.join("digits.onnx");
    let report = json(&sren(&["export", "mnist-sren", "-o", text(&file), "--check", "--json"]));
    assert_eq!(report["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(report["opset"], 17);
    assert_eq!(report["outputs"], serde_json::json!(["logits", "probabilities"]));
    let check = &report["check"];
    assert_eq!((&check["engine"], &check["images"]), (&"rten".into(), &check["equal_classes"]));
    assert!(check["images"].as_u64().unwrap() >= 30);
    assert!(check["probability_difference"].as_f64().unwrap() <= 1e-4, "{check}");
    let shown = succeeds(&sren(&["export", "mnist-sren", "-o", text(&file), "--layout", "nhwc"]));
    assert!(shown.contains("bytes") && shown.contains("opset 17") && shown.lines().count() == 1);
    let inside = ["export", "mnist-sren", "-o", text(&file), "--with-preprocessing", "--check"];
    assert!(succeeds(&sren(&inside)).contains("32 of 32 classes equal"));
    succeeds(&sren(&["export", "mnist-sren", "-o", text(&file), "--layout", "nhwc"]));
    // The names of classes and parts are in the file, as text.
    let bytes = fs::read(&file).unwrap();
    let holds = |part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
    for part in [
        "pose/rings/conv",
        "pose/scales/conv",
        "patches/taps/add",
        "layer1/conv",
        "head/moments/d1e-1/mul",
        "[\"0\",\"1\",\"2\"",
        "weights_crc32",
        "[n, h, w, c], f32, 0 to 1",
    ] {
        assert!(holds(part), "{part}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn onnxruntime_predicts_as_we_do() {
    // 13 images of each of 8 kinds.
    let Some(report) = check(&["mnist-sren", "--count", "13"], "venv") else { return };
    assert_eq!((&report["passed"], &report["engine"]), (&true.into(), &"onnxruntime".into()));
    let kinds = report["kinds"].as_object().unwrap();
    assert_eq!(kinds.len(), 8);
    assert!(kinds.values().all(|kind| kind["images"] == 13), "{report}");
    // Images of any size, preprocessed inside the graph.
    let inside = ["mnist-sren", "--count", "4", "--export=--with-preprocessing"];
    let report = check(&inside, "venv").unwrap();
    assert_eq!(report["kinds"].as_object().unwrap().len(), 9, "{report}");
}

#[test]
fn the_engine_of_browsers_predicts_as_we_do() {
    let web = ["mnist-sren", "--count", "13", "--engine", "web"];
    let Some(report) = check(&web, "node_modules/onnxruntime-web") else { return };
    assert_eq!(report["engine"], "onnxruntime-web");
    for (kind, row) in report["kinds"].as_object().unwrap() {
        assert!(row["logit"].as_f64().unwrap() <= 1e-3, "{kind}: {row}");
        assert_eq!(row["other_classes"], 0, "{kind}: {row}");
    }
}

#[test]
fn bad_input_leaves_no_file() {
    let folder = folder("bad");
    let file = folder.join("model.onnx");
    let output = text(&file);
    assert_fails(&["export", "no/such/run", "-o", output], &["no/such/run"]);
    assert_fails(&["export", text(&folder), "-o", output], &["config.toml"]);
    assert_fails(
        &["export", "mnist-sren", "-o", output, "--size", "7"],
        &["sides of 8 to 2048 pixels", "[1, 7, 7, 1]"],
    );
    assert_fails(&["export", "mnist-sren", "-o", output, "--size", "60000"], &["expected", "got"]);
    assert_fails(
        &["export", "mnist-sren", "-o", output, "--outputs", "poses", "--check"],
        &["logits among the outputs"],
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let missing = folder.join("none/model.onnx");
    assert_fails(&["export", "mnist-sren", "-o", text(&missing)], &["cannot be written", "none"]);
    assert_fails(&["export", "mnist-sren", "-o", text(&folder)], &["cannot be written"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    for wrong in [
        &["export"][..],
        &["export", "mnist-sren", "--outputs", "scores"],
        &["export", "mnist-sren", "--taps", "cubic"],
        &["export", "mnist-sren", "--size", "56", "--with-preprocessing"],
        &["export", "mnist-sren", "--size", "0"],
    ] {
        assert_eq!(sren(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
