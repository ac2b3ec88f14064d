//! Runs whose files are damaged, absurd, or gone.

use std::fs;
use std::path::Path;

use sren::{Precision, Weights};

use crate::support::{assert_fails, text};

/// A run from someone else: errors name what is wrong with its files.
pub(crate) fn broken_runs(data: &Path, path: &Path) {
    let run = text(path);
    let predict = ["predict", run, "x.png"];
    let (model, file) = (path.join("model.safetensors"), path.join("config.toml"));
    let (weights, config) = (fs::read(&model).unwrap(), fs::read_to_string(&file).unwrap());
    // Without a checksum, as other programs write it.
    let mut nan =
        Weights { metadata: Default::default(), ..Weights::from_bytes(&weights).unwrap() };
    nan.tensors.values_mut().next().unwrap().1[0] = f32::NAN;
    let nan = nan.to_bytes(Precision::Single).unwrap();
    let mut wide = weights.clone();
    wide[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    for (bytes, says) in [
        (nan, "that are no numbers"),
        (wide, "a whole file"),
        (weights[..weights.len() / 2].to_vec(), "bytes of values"),
        (b"hello".to_vec(), "a whole file"),
        (Vec::new(), "a whole file"),
    ] {
        fs::write(&model, bytes).unwrap();
        assert_fails(&predict, &["model.safetensors", says]);
    }
    fs::remove_file(&model).unwrap();
    assert_fails(&predict, &["model.safetensors"]);
    fs::create_dir(&model).unwrap();
    assert_fails(&predict, &["model.safetensors", "no file"]);
    fs::remove_dir(&model).unwrap();
    fs::write(&model, &weights).unwrap();
    for (from, to, says) in [
        ("stem_channels = 24", "stem_channels = 25", "stem"),
        ("stem_channels = 24", "stem_channels = 9000000000000000000", "channels"),
        ("stem_kernel = 7", "stem_kernel = 9000000000000000001", "kernel"),
        ("rings = ", "rings = 99999999999 # ", "rings"),
        ("blocks = 1", "blocks = 9000000000000000000", "blocks"),
        ("canvas = 24", "canvas = 9000000000", "canvas"),
        ("classes = [\"bar\", \"blob\"]", "classes = [\"bar\"]", "classes"),
        ("[\"bar\", \"blob\"]", "[\"bar\", \"blob\", \"c\"]", "a network for 3 classes"),
        ("[\"bar\", \"blob\"]", "[]", "the names of the classes"),
    ] {
        assert!(config.contains(from), "{from}: {config}");
        fs::write(&file, config.replacen(from, to, 1)).unwrap();
        assert_fails(&predict, &[says]);
    }
    fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    assert_fails(&predict, &["config.toml", "expected a training configuration"]);
    fs::write(&file, config).unwrap();
    // The images of the run are gone, or others.
    fs::remove_file(data.join("train/bar/00.png")).unwrap();
    let resume = ["train", "--resume", run];
    assert_fails(
        &resume,
        &["expected the training images of the run", "1 missing", "train/bar/00.png"],
    );
    fs::rename(data.join("test/bar"), data.join("test/baz")).unwrap();
    assert_fails(&["eval", run], &["the same classes in train and test"]);
    fs::rename(data.join("train/bar"), data.join("train/baz")).unwrap();
    assert_fails(&["eval", run], &["the 2 classes of the run"]);
    fs::remove_dir_all(data).unwrap();
    assert_fails(&["eval", run], &[text(data)]);
}
