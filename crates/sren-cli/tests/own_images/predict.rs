//! Prediction: good images, bad ones among them, lists.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{command, said, sren, succeeds, text};

pub(crate) fn predicts(folder: &Path, run: &str) {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (good, bad) = (file("test/blob/30.png"), file("train/blob/05.png"));
    let output = sren(&["predict", run, &good, &file("test/bar/31.jpg")]);
    let shown = succeeds(&output);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    let last = said(&output).lines().last().unwrap().to_string();
    assert!(
        last.starts_with("2 images in ") && last.ends_with("% of it reading, 0 failed"),
        "{last}"
    );

    // Unreadable files do not stop the others; the list comes from standard input.
    let missing = file("no/such.png");
    let mut child = command(&["predict", run, "-", "--top", "2", "--json"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let list = format!("{good}\n\n{missing}\n{bad}\n{good}\n");
    child.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let notes = said(&output);
    assert!(notes.contains("such.png") && notes.contains("05.png"), "{notes}");
    assert!(notes.lines().last().unwrap().ends_with("2 failed"), "{notes}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["image"], &lines[0]), (&Value::from(good.clone()), &lines[1]));
    let top = lines[0]["top"].as_array().unwrap();
    assert_eq!((top.len(), &top[0]["class"]), (2, &lines[0]["class"]));
    let probability = |i: usize| top[i]["probability"].as_f64().unwrap();
    assert!(
        (probability(0) + probability(1) - 1.0).abs() < 1e-5 && probability(0) >= probability(1)
    );
    assert!(lines[0]["pose"]["scale_px"].as_f64().unwrap() > 0.0, "{lines:?}");

    // A flat image has no pose, a list may be empty.
    let flat = folder.join("flat.png");
    image::RgbImage::from_pixel(30, 30, image::Rgb([9, 90, 200])).save(&flat).unwrap();
    let shown = succeeds(&sren(&["predict", run, text(&flat), "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["pose"], Value::Null);
    let output = command(&["predict", run, "-"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(succeeds(&output), "");

    for (name, bytes, says) in [
        ("empty.png", Vec::new(), "an empty file"),
        ("text.jpg", b"hello".to_vec(), "a png, jpeg, webp, bmp, gif or tiff image"),
        (
            "cut.png",
            fs::read(&good).unwrap()[..60].to_vec(),
            "a png, jpeg, webp, bmp, gif or tiff image",
        ),
        ("zero.png", sized(&good, 0, 0), "zero.png"),
        ("huge.png", sized(&good, 1 << 30, 1 << 30), "huge.png"),
        ("bomb.png", sized(&good, 16_000, 16_000), "bomb.png"),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        let output = sren(&["predict", run, text(&path)]);
        assert!(output.status.code() == Some(1) && said(&output).contains(says), "{output:?}");
    }
    let output = sren(&["predict", run, text(folder)]);
    assert!(output.status.code() == Some(1) && said(&output).contains("error: "), "{output:?}");
    if Path::new("/dev/full").exists() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(&["predict", run, &good]).stdout(full).output().unwrap();
        assert!(output.status.code() == Some(1) && said(&output).contains("standard output"));
    }
}

/// A PNG with another size in its header.
fn sized(path: &str, width: u32, height: u32) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let sum = !bytes[12..29].iter().fold(!0u32, |sum, byte| {
        let bit = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        (0..8).fold(sum ^ u32::from(*byte), bit)
    });
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    bytes
}
