//! Folders that are split in several ways, and small ones.

use std::fs;

use crate::support::{assert_fails, json, nothing, said, sren, succeeds, text};
use crate::written::{split_folder, train, write_image};

#[test]
fn a_validation_folder_chooses_the_epoch_and_is_not_trained_on() {
    let (data, run) = (split_folder("validated"), nothing("validated-run"));
    for class in ["bar", "blob"] {
        (40..43).for_each(|i| write_image(&data.join("val").join(class), class, i));
    }
    succeeds(&train(text(&data), text(&run), &["--epochs", "1"]));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    for part in ["training_images = 40", "validation_images = 6", "validation_files = 6"] {
        assert!(config.contains(part), "{config}");
    }
    let tested = json(&sren(&["eval", text(&run), "--json", "--sets", "upright"]));
    assert_eq!(tested["sets"]["upright"]["n"], 12);
    let held_out = ["eval", text(&run), "--json", "--sets", "upright", "--held-out"];
    let held_out = json(&sren(&held_out));
    let counts = |class: usize| -> u64 {
        let row = held_out["sets"]["upright"]["confusion"][class].as_array().unwrap();
        row.iter().map(|n| n.as_u64().unwrap()).sum()
    };
    assert_eq!([counts(0), counts(1)], [3, 3]);

    // Without a test folder, the validation folder is the test set.
    fs::remove_dir_all(data.join("test")).unwrap();
    let run = nothing("validated-only");
    succeeds(&train(text(&data), text(&run), &["--epochs", "1"]));
    let tested = json(&sren(&["eval", text(&run), "--json", "--sets", "upright"]));
    assert_eq!(tested["sets"]["upright"]["n"], 6);
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("validation_images = 4"), "{config}");

    fs::rename(data.join("val/bar"), data.join("val/rod")).unwrap();
    let never = nothing("never");
    let arguments = ["train", "--data", text(&data), "--out", text(&never)];
    assert_fails(&arguments, &["the same classes in train and val", "bar in only one"]);
}

#[test]
fn every_class_is_trained_on_or_named() {
    let data = nothing("small-classes");
    for class in ["bar", "blob"] {
        (0..2).for_each(|i| write_image(&data.join(class), class, i));
    }
    let out = nothing("never-trained");
    let arguments = ["train", "--data", text(&data), "--size", "16", "--out", text(&out)];
    assert_fails(&arguments, &["training split", "1 of class bar"]);
    for class in ["bar", "blob"] {
        (2..20).for_each(|i| write_image(&data.join(class), class, i));
    }
    assert_fails(&[&arguments[..], &["--images", "1"]].concat(), &["0 of class blob"]);
    assert!(!out.exists());
    assert_eq!(sren(&[&arguments[..], &["--images", "0"]].concat()).status.code(), Some(2));
    let run = nothing("few-images");
    succeeds(&train(
        text(&data),
        text(&run),
        &["--images", "8", "--epochs", "1", "--test-images", "70000"],
    ));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    // A quarter of 8, not a tenth of all.
    assert!(config.contains("training_images = 8") && config.contains("validation_images = 2"));
}

#[test]
fn broken_test_images_are_found_before_training() {
    let data = split_folder("broken-test");
    for i in 30..33 {
        let broken = fs::read_dir(data.join("test/bar")).unwrap().flatten();
        for file in broken.filter(|f| f.file_name().to_string_lossy().starts_with(&i.to_string())) {
            fs::write(file.path(), b"no image").unwrap();
        }
    }
    let out = nothing("broken-test-run");
    let output = train(text(&data), text(&out), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("at most 5 % of the files broken, got 3 of 12"));
    assert!(!said(&output).contains("epoch 1") && !out.exists(), "{}", said(&output));
}
