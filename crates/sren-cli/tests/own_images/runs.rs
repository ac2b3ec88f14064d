//! Runs that live long: found from elsewhere, locked, extended, checked, started from others.

use std::fs;
use std::path::Path;

use crate::support::{assert_fails, command, folder, json, nothing, said, sren, succeeds, text};
use crate::written::{split_folder, train, write_image};

#[test]
fn a_run_is_evaluated_from_any_folder_and_on_images_that_have_moved() {
    let (here, elsewhere) = (folder("here"), folder("elsewhere"));
    let data = split_folder("moving");
    fs::rename(&data, here.join("photos")).unwrap();
    let arguments = "train --data photos --size 16 --batch 8 --epochs 1 --threads 2 --out run";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    succeeds(&command(&arguments).current_dir(&here).output().unwrap());
    let run = here.join("run");
    let eval = ["eval", text(&run), "--json"];
    let from = |path: &Path, more: &[&str]| {
        command(&[&eval[..], more].concat()).current_dir(path).output().unwrap()
    };
    let first = succeeds(&from(&here, &[]));
    assert_eq!(first, succeeds(&from(&elsewhere, &[])));
    fs::rename(here.join("photos"), elsewhere.join("pictures")).unwrap();
    let moved = succeeds(&from(&elsewhere, &["--data", "pictures"]));
    assert_eq!(first.replace("photos", "pictures"), moved);
    assert_fails(&eval, &["photos", "No such file"]);
    assert_fails(&[&eval[..], &["--data", "mnist"]].concat(), &["--data", "images like those of"]);
    // Where the absolute path is gone, the typed one counts.
    fs::rename(elsewhere.join("pictures"), elsewhere.join("photos")).unwrap();
    assert_eq!(first, succeeds(&from(&elsewhere, &[])));
}

#[test]
fn a_run_folder_belongs_to_one_training() {
    let (data, run) = (split_folder("locked"), nothing("locked-run"));
    let arguments = ["train", "--data", text(&data), "--size", "16", "--batch", "8"];
    let more = ["--epochs", "100000", "--out", text(&run)];
    let mut child = command(&[&arguments[..], &more].concat()).spawn().unwrap();
    while !run.join("config.toml").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let process = format!("process {} is training", child.id());
    assert_fails(&["train", "--resume", text(&run)], &["locked-run", &process]);
    let again = [&arguments[..], &["--out", text(&run)]].concat();
    assert_fails(&again, &["a folder without a run"]);
    child.kill().unwrap();
    child.wait().unwrap();

    let foreign = folder("foreign");
    fs::write(foreign.join("thesis.tex"), b"work of years").unwrap();
    let into = [&arguments[..], &["--out", text(&foreign)]].concat();
    assert_fails(&into, &["a new or empty folder, got one with thesis.tex"]);
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
}

#[test]
fn a_finished_run_is_extended_and_its_images_are_compared() {
    let (data, run) = (split_folder("extended"), nothing("extended-run"));
    let path = text(&run);
    succeeds(&train(text(&data), path, &["--epochs", "1"]));
    let epochs = || fs::read_to_string(run.join("metrics.jsonl")).unwrap().lines().count();
    assert_eq!(epochs(), 1);
    let output = sren(&["train", "--resume", path, "--epochs", "3", "--threads", "1"]);
    succeeds(&output);
    assert_eq!(epochs(), 3);
    let notes = said(&output);
    assert!(notes.contains("1 threads instead of 2: the last bits will differ"), "{notes}");
    let fewer = ["train", "--resume", path, "--epochs", "2"];
    assert_fails(&fewer, &["at least the 3 epochs that are done, got 2"]);
    // Nothing to do, the report is written again.
    fs::remove_file(run.join("report.html")).unwrap();
    succeeds(&sren(&["train", "--resume", path, "--threads", "1"]));
    assert!(run.join("report.html").exists());

    let resume = ["train", "--resume", path, "--epochs", "4"];
    let image = data.join("train/bar/00.png");
    let content = fs::read(&image).unwrap();
    image::RgbImage::from_pixel(20, 20, image::Rgb([1, 2, 3])).save(&image).unwrap();
    let changed = "1 changed, 0 missing, 0 new, the first: train/bar/00.png";
    assert_fails(&resume, &["the training images of the run", changed]);
    assert_fails(&["eval", path, "--held-out"], &[changed]);
    fs::write(&image, content).unwrap();
    write_image(&data.join("train/blob"), "blob", 45);
    assert_fails(&resume, &["0 changed, 0 missing, 1 new, the first: train/blob/45.png"]);
    fs::remove_file(data.join("train/blob/45.png")).unwrap();
    succeeds(&sren(&resume));
}

#[test]
fn every_flipped_bit_is_found() {
    let (data, run) = (split_folder("flipped"), nothing("flipped-run"));
    succeeds(&train(text(&data), text(&run), &["--epochs", "1"]));
    let image = data.join("test/bar/30.png");
    for (file, arguments) in [
        ("model.safetensors", vec!["predict", text(&run), text(&image)]),
        ("checkpoint/state.safetensors", vec!["train", "--resume", text(&run), "--epochs", "2"]),
    ] {
        let path = run.join(file);
        let whole = fs::read(&path).unwrap();
        // Some bits of the header, many of the values.
        let places = (0..12).map(|i| 8 + i * 97).chain((1..20).map(|i| i * whole.len() / 20));
        for place in places {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 7);
            fs::write(&path, bytes).unwrap();
            let output = sren(&arguments);
            let (code, notes) = (output.status.code(), said(&output));
            assert!(code == Some(1) && notes.contains("safetensors"), "{file} {place}: {notes}");
        }
        fs::write(&path, whole).unwrap();
    }
    succeeds(&sren(&["predict", text(&run), text(&image)]));
}

#[test]
fn a_run_starts_from_the_weights_of_another() {
    let (data, first) = (split_folder("first"), nothing("first-run"));
    succeeds(&train(text(&data), text(&first), &["--epochs", "3"]));
    // Other classes, fewer images.
    let other = nothing("other");
    for (class, like) in [("pipe", "bar"), ("sun", "blob"), ("moon", "blob")] {
        (50..56).for_each(|i| write_image(&other.join(class), like, i));
    }
    let weights = |run: &Path| {
        sren::Weights::from_bytes(&fs::read(run.join("model.safetensors")).unwrap()).unwrap()
    };
    let start = ["train", "--from", text(&first), "--data", text(&other), "--epochs", "1"];
    let with = |more: &[&str], name: &str| {
        let run = nothing(name);
        let all = [&start[..], &["--batch", "8", "--threads", "2", "--out", text(&run)], more];
        succeeds(&sren(&all.concat()));
        run
    };
    let [tuned, frozen] = [with(&[], "tuned"), with(&["--freeze-backbone"], "frozen")];
    let (before, tuned_weights, frozen_weights) =
        (weights(&first), weights(&tuned), weights(&frozen));
    let mut kept = 0;
    for (name, (shape, values)) in &before.tensors {
        let learned = !name.contains("running");
        if name.contains("backbone.") && learned {
            assert_eq!(values, &frozen_weights.tensors[name].1, "{name}");
            assert_ne!(values, &tuned_weights.tensors[name].1, "{name}");
            kept += 1;
        } else if learned && shape != &frozen_weights.tensors[name].0 {
            kept += 1000;
        }
    }
    assert!((10..).contains(&kept) && kept >= 1000, "{kept}");
    let shown = json(&sren(&["predict", text(&frozen), text(&other.join("sun/50.png")), "--json"]));
    assert!(["pipe", "sun", "moon"].contains(&shown["class"].as_str().unwrap()), "{shown}");
    // The run goes on without the one that it came from.
    fs::remove_dir_all(&first).unwrap();
    succeeds(&sren(&["train", "--resume", text(&tuned), "--epochs", "2", "--threads", "2"]));

    let out = text(&tuned);
    let refused = ["train", "--from", "mnist-sren", "--data", text(&other), "--out", out];
    assert_fails(&refused, &["mnist-sren", "a run on photographs, got one on digits"]);
    let missing = ["train", "--from", text(&first), "--data", text(&other)];
    assert_fails(&missing, &["first-run", "the folder of a run"]);
    assert_eq!(sren(&["train", "--freeze-backbone"]).status.code(), Some(2));
    let arch = ["train", "--from", text(&frozen), "--arch", "small"];
    assert_eq!(sren(&arch).status.code(), Some(2));
}
