//! Images as they really are: camera orientation, cut files, many formats, large files, pipes.

use std::fs;
use std::path::Path;

use image::{ImageFormat, RgbImage};
use serde_json::Value;

use crate::support::{assert_fails, folder, json, said, sren, succeeds, text};

/// Dark on the left, bright on the right.
fn halves(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| image::Rgb([if x < width / 2 { 20 } else { 220 }; 3]))
}

/// A JPEG with an EXIF segment that says: rotated by 90 degrees clockwise to be upright.
fn rotated_photograph(path: &Path) {
    let mut jpeg = std::io::Cursor::new(Vec::new());
    halves(60, 40).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let jpeg = jpeg.into_inner();
    let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut bytes = jpeg[..2].to_vec();
    bytes.extend([0xFF, 0xE1]);
    bytes.extend((exif.len() as u16 + 2).to_be_bytes());
    bytes.extend(exif);
    bytes.extend(&jpeg[2..]);
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_orientation_of_a_camera_is_applied_wherever_an_image_is_read() {
    let folder = folder("camera");
    let (photograph, upright) = (folder.join("phone.jpg"), folder.join("upright.png"));
    rotated_photograph(&photograph);
    image::imageops::rotate90(&halves(60, 40)).save(&upright).unwrap();
    let posed = |path: &Path| json(&sren(&["pose", text(path), "--json"]));
    let (phone, expected) = (posed(&photograph), posed(&upright));
    assert_eq!((&phone["height"], &phone["width"]), (&60.into(), &40.into()));
    let angle = |figures: &Value| figures["dominant_angle_deg"].as_f64().unwrap();
    assert!((angle(&phone) - angle(&expected)).abs() < 5.0, "{phone}");
    let predicted = |path: &Path| json(&sren(&["predict", "mnist-sren", text(path), "--json"]));
    let (phone, upright) = (predicted(&photograph), predicted(&upright));
    assert_eq!(phone["class"], upright["class"]);
    let apart =
        |key: &str| phone["pose"][key].as_f64().unwrap() - upright["pose"][key].as_f64().unwrap();
    assert!(apart("orientation_deg").abs() < 3.0, "{phone} {upright}");
}

#[test]
fn a_cut_jpeg_is_a_broken_file() {
    let folder = folder("cut");
    let whole = folder.join("whole.jpg");
    halves(200, 150).save(&whole).unwrap();
    let bytes = fs::read(&whole).unwrap();
    let cut = folder.join("cut.jpg");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert_fails(&["pose", text(&cut)], &["cut.jpg", "cut off"]);
    let output = sren(&["predict", "mnist-sren", text(&cut), text(&whole)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cut.jpg") && said(&output).contains("1 failed"));
}

#[test]
fn every_format_is_predicted_the_same() {
    let folder = folder("formats");
    let grey = image::DynamicImage::from(halves(64, 48));
    let mut files = Vec::new();
    for name in ["a.png", "a.webp", "a.bmp", "a.gif", "a.tiff"] {
        let path = folder.join(name);
        grey.save(&path).unwrap();
        files.push(path);
    }
    let deep = folder.join("deep.tif");
    grey.to_rgb16().save(&deep).unwrap();
    files.push(deep);
    let mut arguments = vec!["predict", "mnist-sren", "--json"];
    arguments.extend(files.iter().map(|path| text(path)));
    let lines = succeeds(&sren(&arguments));
    let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), files.len());
    for one in &found {
        assert_eq!(one["top"], found[0]["top"], "{}", one["image"]);
    }
}

#[test]
fn large_images_are_reduced_and_figures_are_in_pixels_of_the_file() {
    let folder = folder("large");
    let large = folder.join("large.jpg");
    halves(3000, 2000).save(&large).unwrap();
    let figures = json(&sren(&["pose", text(&large), "--json"]));
    assert_eq!((&figures["height"], &figures["width"]), (&2000.into(), &3000.into()));
    let points = figures["poses"].as_array().unwrap();
    assert!(points.iter().any(|point| point["x"].as_f64().unwrap() > 1000.0), "{figures}");
    let small = json(&sren(&["pose", text(&large), "--json", "--size", "64"]));
    assert_eq!(small["width"], 3000);
    let median = |figures: &Value| figures["scale"]["median"].as_f64().unwrap();
    assert!(median(&small) > median(&figures), "{small}");
    assert_fails(&["pose", text(&large), "-o", text(&large)], &["large.jpg", "got the image"]);
    assert!(fs::metadata(&large).unwrap().len() > 10_000);
}

#[test]
#[cfg(unix)]
fn a_pipe_does_not_hang() {
    let folder = folder("pipe");
    let pipe = folder.join("pipe.png");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_fails(&["pose", text(&pipe)], &["pipe.png", "expected a file, got a pipe or device"]);
    let output = sren(&["predict", "mnist-sren", text(&pipe), "/dev/zero"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("2 failed"), "{}", said(&output));
}

#[test]
fn digits_have_names_everywhere() {
    let lines = succeeds(&sren(&["predict", "mnist-sren", "mnist:0-2", "mnist:7", "--json"]));
    let classes: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["class"].clone())
        .collect();
    assert_eq!(classes, ["7", "2", "1", "9"]);
    let evaluation = json(&sren(&["eval", "mnist:0-99", "--sets", "upright", "--json"]));
    assert_eq!(evaluation["sets"]["upright"]["n"], 100);
    let one = ["eval", "mnist-sren", "mnist:3", "--sets", "r", "--json"];
    assert_eq!(json(&sren(&one))["sets"]["r"]["n"], 1);
    assert_fails(&["eval", "mnist:5-1"], &["mnist:5-1", "expected mnist:0 to mnist:9999"]);
}

/// The most memory that a command takes, in MB.
#[cfg(target_os = "linux")]
fn peak_memory(arguments: &[&str]) -> u64 {
    let mut child = crate::support::command(arguments).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(number.unwrap_or(0u64));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{arguments:?}");
    peak / 1024
}

#[test]
#[cfg(target_os = "linux")]
fn large_images_need_little_memory() {
    let folder = folder("memory");
    let (large, small) = (folder.join("large.jpg"), folder.join("small.png"));
    halves(8000, 8000).save(&large).unwrap();
    halves(64, 64).save(&small).unwrap();
    let out = text(&folder);
    for arguments in [
        &["predict", "mnist-sren", text(&large)][..],
        &["pose", text(&large), "-o", text(&folder.join("pose.png"))],
        &["visualize", "mnist-sren", text(&large), "-o", out],
        &["visualize", "mnist-sren", text(&small), "-o", out],
    ] {
        let peak = peak_memory(arguments);
        assert!((10..500).contains(&peak), "{peak} MB: {arguments:?}");
    }
}
