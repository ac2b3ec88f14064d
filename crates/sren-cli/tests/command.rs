//! The real binary, as a user runs it: results, errors and exit codes.

mod support;

use std::path::Path;

use support::{assert_fails, folder, json, sren};

#[test]
fn pose_draws_a_bundled_digit() {
    let picture = folder("pose").join("digit.png");
    let output = sren(&["pose", "mnist:0", "-o", picture.to_str().unwrap(), "--json"]);
    let figures = json(&output);
    assert_eq!(figures["height"], 56);
    let share = figures["share"].as_f64().unwrap();
    assert!((0.05..0.9).contains(&share), "{share}");
    assert_eq!(
        figures["poses"].as_array().unwrap().len(),
        (share * figures["positions"].as_f64().unwrap()).round() as usize
    );
    let drawn = image::open(&picture).unwrap().to_rgb8();
    assert!(drawn.width() >= 900 && drawn.height() > drawn.width());
    // Arrows are coloured, the digit is grey.
    let coloured =
        drawn.pixels().filter(|p| p.0.iter().max().unwrap() - p.0.iter().min().unwrap() > 80);
    assert!(coloured.count() > 2000);
}

#[test]
fn pose_reads_files_of_every_kind() {
    let folder = folder("kinds");
    let ramp = |x: u32, y: u32| (x * 5 + y * 2) as u8;
    let grey = image::GrayImage::from_fn(40, 30, |x, y| image::Luma([ramp(x, y)]));
    let deep =
        image::ImageBuffer::from_fn(40, 30, |x, y| image::Luma([u16::from(ramp(x, y)) * 257]));
    let alpha = image::RgbaImage::from_fn(40, 30, |x, y| image::Rgba([ramp(x, y), 9, 90, 255]));
    let colour = image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([ramp(x, y), 9, 90]));
    grey.save(folder.join("grey.png")).unwrap();
    deep.save(folder.join("deep.png")).unwrap();
    alpha.save(folder.join("alpha.png")).unwrap();
    colour.save(folder.join("colour.jpg")).unwrap();
    for name in ["grey.png", "deep.png", "alpha.png", "colour.jpg"] {
        let path = folder.join(name);
        let figures = json(&sren(&["pose", path.to_str().unwrap(), "--json"]));
        assert_eq!((&figures["height"], &figures["width"]), (&30.into(), &40.into()), "{name}");
    }
}

#[test]
fn pose_returns_an_error_for_files_that_are_no_images() {
    let folder = folder("broken");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let whole = image::GrayImage::from_fn(64, 64, |x, y| image::Luma([(x * y) as u8]));
    whole.save(path("whole.png")).unwrap();
    let bytes = std::fs::read(path("whole.png")).unwrap();
    std::fs::write(path("truncated.png"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(path("empty.png"), b"").unwrap();
    std::fs::write(path("text.png"), b"this is no image").unwrap();
    image::GrayImage::new(1, 1).save(path("dot.png")).unwrap();
    // A PNG header that says 0 x 0.
    let mut none = bytes.clone();
    none[16..24].fill(0);
    std::fs::write(path("none.png"), none).unwrap();

    assert_fails(&["pose", &path("missing.png")], &["missing.png"]);
    assert_fails(
        &["pose", &path("truncated.png")],
        &["truncated.png", "expected a png, jpeg, webp, bmp, gif or tiff image"],
    );
    assert_fails(&["pose", &path("empty.png")], &["empty.png", "an empty file"]);
    assert_fails(
        &["pose", &path("text.png")],
        &["text.png", "expected a png, jpeg, webp, bmp, gif or tiff image"],
    );
    assert_fails(&["pose", &path("none.png")], &["none.png"]);
    assert_fails(
        &["pose", &path("dot.png")],
        &["dot.png", "sides of 8 to 2048 pixels", "[1, 1, 1, 1]"],
    );
    assert_fails(&["pose", "mnist:10000"], &["expected mnist:0 to mnist:9999", "mnist:10000"]);
    assert_fails(&["pose", "mnist:x"], &["mnist:x"]);
    assert_fails(&["pose", folder.to_str().unwrap()], &["broken"]);
}

#[test]
fn a_picture_is_written_atomically() {
    let folder = folder("write");
    let nowhere = folder.join("no/such/folder/a.png");
    assert_fails(
        &["pose", "mnist:1", "-o", nowhere.to_str().unwrap()],
        &["a.png", "cannot be written"],
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    if Path::new("/dev/full").exists() {
        assert_fails(&["pose", "mnist:1", "-o", "/dev/full"], &["/dev/full", "cannot be written"]);
    }
}

#[test]
fn wrong_usage_is_code_2() {
    for arguments in [
        &["pose"][..],
        &["pose", "mnist:1", "--no-such-flag"],
        &["no-such-command"],
        &["equivariance", "--data", "."],
        &["equivariance", "--pose", "--images", "mnist"],
        &["equivariance", "--pose", "--images", "0"],
        &["eval", "no/such/run", "--images", "0"],
        &["train", "--preset", "no-such-preset"],
        &[],
    ] {
        assert_eq!(sren(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn poses_are_equivariant_on_mnist() {
    let report = json(&sren(&["equivariance", "--pose", "--images", "200", "--json"]));
    let mnist = &report["lemma"]["mnist"];
    let figure = |name: &str| mnist[name].as_f64().unwrap();
    assert!(figure("ok") >= 0.96, "{mnist}");
    assert!(figure("share") >= 0.85, "{mnist}");
    assert!(figure("median_angle_deg") < 1.0 && figure("median_log_scale") < 0.02, "{mnist}");
    assert_eq!(figure("n"), 5000.0);
    assert!(report["lemma"].get("natural").is_none());
}

#[test]
fn poses_are_measured_on_a_folder_of_photographs() {
    let folder = folder("photographs");
    std::fs::create_dir_all(folder.join("test/a")).unwrap();
    assert_fails(
        &["equivariance", "--pose", "--data", folder.to_str().unwrap()],
        &["photographs", "expected images below it, got none"],
    );
    for i in 0..3u32 {
        // Soft waves of different lengths, no two the same.
        let wave = |x: u32, y: u32| {
            let (x, y) = (x as f32, y as f32);
            let v =
                (x / (3.0 + i as f32)).sin() + (y / 4.0 + x / 9.0).cos() + (x * y / 300.0).sin();
            (127.0 + 40.0 * v) as u8
        };
        let picture =
            image::RgbImage::from_fn(60, 44, |x, y| image::Rgb([wave(x, y), wave(y, x), 90]));
        picture.save(folder.join(format!("test/a/{i}.png"))).unwrap();
    }
    let data = folder.to_str().unwrap();
    let arguments = ["equivariance", "--pose", "--images", "3", "--json", "--data", data];
    let report = json(&sren(&arguments));
    let natural = &report["lemma"]["natural"];
    assert_eq!(natural["n"], 75);
    assert!(natural["ok"].as_f64().unwrap() > 0.8, "{natural}");
    assert_eq!(report, json(&sren(&arguments)), "same seed, same figures");
    assert_fails(&["equivariance", "--pose", "--data", "no/such/folder"], &["no/such/folder"]);
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = support::succeeds(&sren(&["completions", shell]));
        for word in ["equivariance", "visualize", "freeze-backbone"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(sren(&["completions", "tcsh"]).status.code(), Some(2));
    let pages = folder("man");
    support::succeeds(&sren(&["man", "-o", pages.to_str().unwrap()]));
    let page = std::fs::read_to_string(pages.join("sren-train.1")).unwrap();
    assert!(page.contains("freeze") && page.contains(".TH"), "{page}");
    assert!(pages.join("sren.1").exists());
}

#[test]
fn quiet_commands_print_results_only() {
    let quiet = sren(&["--quiet", "predict", "mnist-sren", "mnist:0"]);
    assert_eq!(support::said(&quiet), "");
    let loud = sren(&["predict", "mnist-sren", "mnist:0"]);
    assert_eq!(quiet.stdout, loud.stdout);
    assert!(support::said(&loud).contains("1 images in"));
    let failed = sren(&["predict", "-q", "mnist-sren", "none.png"]);
    let said = support::said(&failed);
    assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("error: none.png: "), "{said}");
}

#[test]
fn long_work_says_how_long_it_will_take() {
    let long = |count| ["eval", "--images", count, "--sets", "upright", "--threads", "1", "--json"];
    let begin = std::time::Instant::now();
    let (mut count, mut loud) = ("1500", sren(&long("1500")));
    // On a fast machine that is no long work.
    if begin.elapsed().as_secs() < 8 {
        (count, loud) = ("10000", sren(&long("10000")));
    }
    let said = support::said(&loud);
    let line = said.lines().find(|line| line.starts_with("evaluating upright: "));
    assert!(line.is_some_and(|line| line.ends_with(" left")), "{said}");
    let quiet = sren(&[&long(count)[..], &["--quiet"]].concat());
    assert_eq!((support::said(&quiet).as_str(), &quiet.stdout), ("", &loud.stdout));
}
