//! Training on your own images as a user runs it: folders, STL-10 files, prediction, broken files.

mod architectures;
mod broken_run;
mod invalid;
mod layouts;
mod predict;
mod real_files;
mod resume;
mod runs;
mod stl10;
#[path = "../support/mod.rs"]
mod support;
mod written;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{json, nothing, said, sren, succeeds, text};
use written::{split_folder, train};

#[test]
fn from_folder_to_prediction() {
    let (folder, path) = (split_folder("folder"), nothing("run"));
    let (data, run) = (text(&folder), text(&path));
    // One file of 40 may be broken.
    fs::write(folder.join("train/blob/05.png"), b"no image").unwrap();
    fs::write(folder.join("train/blob/notes.txt"), b"no image either").unwrap();
    let output = train(data, run, &[]);
    let (shown, notes) = (succeeds(&output), said(&output));
    assert!(notes.contains("1 unreadable files are skipped"), "{notes}");
    let last = notes.lines().last().unwrap();
    assert!(last.starts_with("skipped: ") && last.contains("05.png"), "{notes}");
    for part in ["upright", "ood", "blob", "rows are the true classes"] {
        assert!(shown.contains(part), "{shown}");
    }
    let config = fs::read_to_string(path.join("config.toml")).unwrap();
    for part in ["data = ", "size = 16", "canvas = 24", "[\"bar\", \"blob\"]", "images = 39"] {
        assert!(config.contains(part), "{config}");
    }
    let info = succeeds(&sren(&["info", run]));
    assert!(info.contains("photos sren") && info.contains("24x24"), "{info}");

    let report = succeeds(&sren(&["eval", run, "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["classes"], serde_json::json!(["bar", "blob"]));
    assert_eq!(report["sets"].as_object().unwrap().len(), 2);
    for set in ["upright", "ood"] {
        let set = &report["sets"][set];
        assert_eq!(set["n"], 12);
        let counts = |class: usize| -> u64 {
            set["confusion"][class].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
        };
        assert_eq!((counts(0), counts(1)), (6, 6));
        let right = set["confusion"][0][0].as_u64().unwrap() as f64;
        assert!((set["class_accuracy"][0].as_f64().unwrap() - 100.0 * right / 6.0).abs() < 1e-9);
    }
    assert!(report["sets"]["upright"]["accuracy"].as_f64().unwrap() > 70.0, "{report}");
    let ranges = ["eval", run, "--angles", "-20,20", "--scales", "1,1.2", "--images", "4"];
    let ranges = succeeds(&sren(&ranges));
    assert!(ranges.contains("angles -20 to 20 scales 1 to 1.2"), "{ranges}");

    measured(&folder, &path);
    predict::predicts(&folder, run);
    broken_run::broken_runs(&folder, &path);
}

/// Measurements on a network for colour images.
fn measured(data: &Path, path: &Path) {
    let run = text(path);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    for part in [
        "<h2>Classes</h2>",
        "Most confident errors",
        "data:image/png",
        "blob",
        "12 test photographs",
        "upright, 12 photographs",
        "title=\"blob\"",
        "aria-label=\"picture of features\"",
        "the same weights in a plain CNN",
    ] {
        assert!(page.contains(part), "report.html does not say {part:?}");
    }
    // Errors are shown with the names of their files.
    let all_right = ["Upright", "OOD"].iter().all(|set| page.contains(&format!("{set}: 0 of 12")));
    assert_eq!(page.contains("<span class=\"file\">test/b"), !all_right);
    let images = text(data);
    let measured = ["equivariance", run, "--images", images, "--count", "1", "--positions", "1"];
    let measured = json(&sren(&[&measured[..], &["--angles", "4", "--json"]].concat()));
    assert!(measured["worst"]["rot90"].as_f64().unwrap() < 1e-6, "{measured}");
    assert!(measured["cnn"]["worst"]["rot90"].as_f64().unwrap() > 0.01, "{measured}");
    let curves = json(&sren(&["stability", run, "--images", "4", "--json"]));
    assert_eq!(curves["runs"][0]["images"], 4);
    let image = data.join("test/blob/30.png");
    succeeds(&sren(&["visualize", run, text(&image), "-o", run]));
    assert!(image::open(path.join("visualize.png")).unwrap().width() > 900);
}
