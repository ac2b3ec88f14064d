//! The bundled networks: nothing trained, no run named.

use std::process::Command;

use serde_json::Value;

fn sren(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sren")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

type Figures = [(&'static str, f64); 4];

/// What `sren eval --images 1000` printed when the network was trained,
const PUBLISHED: Figures = [("upright", 98.1), ("r", 97.6), ("s", 98.3), ("srt", 97.0)];
/// and `sren eval mnist-cnn --images 1000`.
const PUBLISHED_CNN: Figures = [("upright", 99.3), ("r", 42.4), ("s", 88.2), ("srt", 33.3)];

fn assert_published(run: &str, model: &str, figures: Figures) {
    let found: Value =
        serde_json::from_str(&sren(&["eval", run, "--images", "1000", "--json"])).unwrap();
    assert_eq!(found["model"], model);
    for (set, published) in figures {
        let accuracy = found["sets"][set]["accuracy"].as_f64().unwrap();
        // Processors round differently: three images.
        assert!((accuracy - published).abs() < 0.35, "{set}: {accuracy}, published {published}");
    }
}

#[test]
fn it_has_the_published_accuracy_on_a_sample_of_the_test_sets() {
    assert_published("mnist-sren", "sren", PUBLISHED);
}

#[test]
fn the_plain_cnn_has_its_own() {
    assert_published("mnist-cnn", "cnn", PUBLISHED_CNN);
}

#[test]
fn every_command_finds_it() {
    assert!(sren(&["info"]).contains("438,162 parameters"));
    assert!(sren(&["eval", "mnist-sren", "--images", "20", "--sets", "r"]).contains("20"));
    assert!(sren(&["info", "mnist-cnn"]).contains("438,162 parameters"));
    assert!(sren(&["predict", "mnist-cnn", "mnist:0"]).contains('7'));
    assert!(sren(&["stability", "--images", "10", "--json"]).contains("mnist-sren"));
}
