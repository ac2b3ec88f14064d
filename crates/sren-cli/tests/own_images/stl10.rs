//! STL-10's own files, small ones.

use std::fs;

use crate::support::{assert_fails, nothing, sren, succeeds, text};

#[test]
fn stl10_files_are_trained_on() {
    let (folder, out) = (nothing("stl10"), nothing("stl10-run"));
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let labels = |n: u8| -> Vec<u8> { (0..n).map(|i| i % 10 + 1).collect() };
    // Class k is a ramp of its own.
    let images = |n: usize| -> Vec<u8> {
        (0..n * 27_648).map(|at| (at % 96 * (at / 27_648 % 10) / 4) as u8).collect()
    };
    let data = format!("stl10:{}", text(&folder));
    let mut arguments = vec!["train", "--data", &data, "--arch", "photos", "--epochs", "1"];
    arguments.extend(["--batch", "8", "--threads", "2", "--out", text(&out)]);
    assert_fails(&arguments, &["train_X.bin"]);
    write("train_X.bin", &images(20)[1..]);
    write("train_y.bin", &labels(20));
    assert_fails(&arguments, &["train_X.bin", "images of 27648 bytes each", "552959 bytes"]);
    write("train_X.bin", &images(20));
    write("train_y.bin", &labels(19));
    assert_fails(&arguments, &["stl10:", "expected 19 images of 96 x 96 x 3"]);
    write("train_y.bin", &[0; 20]);
    assert_fails(&arguments, &["train_y.bin", "labels 1 to 10", "got 0 at 0"]);
    write("train_y.bin", &labels(20));
    write("test_X.bin", &images(10));
    write("test_y.bin", &labels(10));
    let shown = succeeds(&sren(&arguments));
    assert!(shown.contains("airplane") && shown.contains("ood"), "{shown}");
    let config = fs::read_to_string(out.join("config.toml")).unwrap();
    for part in ["size = 96", "canvas = 144", "\"truck\"", "training_images = 18"] {
        assert!(config.contains(part), "{config}");
    }
    // The paper's config: only its length is for another machine.
    let paper = nothing("stl10-paper");
    let mut arguments = vec!["train", "--data", &data, "--preset", "stl10", "--epochs", "0"];
    arguments.extend(["--out", text(&paper)]);
    assert_fails(&arguments, &["at least 1 epoch"]);
}
