//! Runs on a folder are repeated and resumed bit for bit; a full disk is an error.

#![cfg(unix)]

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{command, nothing, said, sren, succeeds, text};
use crate::written::{train, write_image};

#[test]
fn a_killed_run_on_a_folder_ends_with_the_same_weights() {
    let folder = nothing("one-level");
    for class in ["bar", "blob"] {
        (0..15).for_each(|i| write_image(&folder.join(class), class, i));
    }
    let (whole, killed) = (nothing("whole"), nothing("killed"));
    succeeds(&train(text(&folder), text(&whole), &[]));
    let mut arguments = vec!["train", "--data", text(&folder), "--size", "16", "--epochs", "4"];
    arguments.extend(["--batch", "8", "--threads", "2", "--out", text(&killed)]);
    let mut child = command(&arguments).spawn().unwrap();
    let state = killed.join("checkpoint/state.safetensors");
    while !state.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().unwrap();
    succeeds(&sren(&["train", "--resume", text(&killed), "--threads", "2"]));
    for file in ["model.safetensors", "checkpoint/state.safetensors"] {
        assert!(
            fs::read(whole.join(file)).unwrap() == fs::read(killed.join(file)).unwrap(),
            "{file}"
        );
    }

    // Without augmentation; a plain CNN has no poses.
    let plain = nothing("plain");
    succeeds(&train(text(&folder), text(&plain), &["--no-augment", "--model", "cnn"]));
    let config = fs::read_to_string(plain.join("config.toml")).unwrap();
    assert!(!config.contains("[image_folder.augment]"), "{config}");
    let image = folder.join("bar/00.png");
    let shown = succeeds(&sren(&["predict", text(&plain), text(&image), "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["pose"], Value::Null);
    // Its own configuration repeats it, and a full disk is an error.
    let again = nothing("again");
    let config = plain.join("config.toml");
    let repeat = ["train", "--config", text(&config), "--threads", "2", "--out", text(&again)];
    succeeds(&sren(&repeat));
    assert_eq!(
        fs::read(plain.join("model.safetensors")).unwrap(),
        fs::read(again.join("model.safetensors")).unwrap()
    );
    let full = nothing("full");
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec '{}' train --config '{}' --threads 2 --out '{}'",
        env!("CARGO_BIN_EXE_sren"),
        text(&config),
        text(&full)
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let notes = said(&output);
    assert!(output.status.code() == Some(1) && notes.contains("cannot be written"), "{notes}");
    assert!(!full.join("model.safetensors").exists());
}
