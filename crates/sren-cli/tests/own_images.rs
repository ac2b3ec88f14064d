//! Images of one's own, as a user runs it: folders, STL-10 files, prediction, and what is broken.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sren"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sren(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// A path for one test with nothing there.
fn nothing(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("own-{test}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The command fails with code 1 and one last line that holds all of `parts`.
fn assert_fails(arguments: &[&str], parts: &[&str]) {
    let output = sren(arguments);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let errors: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((errors.len(), error.lines().last()), (1, errors.first().copied()), "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
    assert!(output.stdout.is_empty());
}

/// Blobs are soft and red, bars are hard and blue; the kind of file and its size change with `i`.
fn write_image(folder: &Path, class: &str, i: u32) {
    fs::create_dir_all(folder).unwrap();
    let (width, height) = (18 + i % 7, 15 + i % 11);
    let value = |x: u32, y: u32| -> [u8; 3] {
        let (u, v) = (x as f32 - 9.0 - (i % 3) as f32, y as f32 - 8.0);
        match class {
            "bar" if (x / 3 + i).is_multiple_of(2) => [20, 60, 230],
            "bar" => [10, 10, 40],
            _ => [(40.0 + 200.0 * (-(u * u + v * v) / 30.0).exp()) as u8, 40, 30],
        }
    };
    let path = |ending: &str| folder.join(format!("{i:02}.{ending}"));
    match i % 5 {
        0 => image::RgbImage::from_fn(width, height, |x, y| image::Rgb(value(x, y)))
            .save(path("png")),
        1 => image::RgbImage::from_fn(width, height, |x, y| image::Rgb(value(x, y)))
            .save(path("jpg")),
        2 => image::RgbaImage::from_fn(width, height, |x, y| {
            let [r, g, b] = value(x, y);
            image::Rgba([r, g, b, 255])
        })
        .save(path("PNG")),
        3 => image::ImageBuffer::from_fn(width, height, |x, y| {
            image::Rgb(value(x, y).map(|v| u16::from(v) * 257))
        })
        .save(path("png")),
        _ => image::GrayImage::from_fn(width, height, |x, y| image::Luma([value(x, y)[0]]))
            .save(path("jpeg")),
    }
    .unwrap();
}

/// `train` and `test` with two classes of different size.
fn split_folder(test: &str) -> PathBuf {
    let path = nothing(test);
    for (class, training) in [("bar", 16), ("blob", 24)] {
        (0..training).for_each(|i| write_image(&path.join("train").join(class), class, i));
        (30..36).for_each(|i| write_image(&path.join("test").join(class), class, i));
    }
    path
}

fn train(data: &str, run: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["train", "--data", data, "--size", "16", "--epochs", "4", "--batch"];
    arguments.extend(["8", "--threads", "2", "--out", run]);
    arguments.extend(more);
    sren(&arguments)
}

#[test]
fn from_folder_to_prediction() {
    let (folder, path) = (split_folder("folder"), nothing("run"));
    let (data, run) = (text(&folder), text(&path));
    // One file of 40 may be broken.
    fs::write(folder.join("train/blob/05.png"), b"no image").unwrap();
    fs::write(folder.join("train/blob/notes.txt"), b"no image either").unwrap();
    let output = train(data, run, &[]);
    let (shown, notes) = (succeeds(&output), said(&output));
    assert!(notes.contains("1 broken files are left out"), "{notes}");
    let last = notes.lines().last().unwrap();
    assert!(last.starts_with("left out: ") && last.contains("05.png"), "{notes}");
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

    predicts(&folder, run);
    broken_runs(&path);
}

fn predicts(folder: &Path, run: &str) {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (good, bad) = (file("test/blob/30.png"), file("train/blob/05.png"));
    let output = sren(&["predict", run, &good, &file("test/bar/31.jpg")]);
    let shown = succeeds(&output);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    let last = said(&output).lines().last().unwrap().to_string();
    assert!(last.starts_with("2 images in ") && last.ends_with("images/s, 0 failed"), "{last}");

    // The rest goes on; the list comes from standard input.
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
    let chance = |i: usize| top[i]["probability"].as_f64().unwrap();
    assert!((chance(0) + chance(1) - 1.0).abs() < 1e-5 && chance(0) >= chance(1));
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
        ("text.jpg", b"hello".to_vec(), "a png or jpeg image"),
        ("cut.png", fs::read(&good).unwrap()[..60].to_vec(), "a png or jpeg image"),
        ("zero.png", sized(&good, 0, 0), "zero.png"),
        ("huge.png", sized(&good, 1 << 30, 1 << 30), "huge.png"),
        ("bomb.png", sized(&good, 16_000, 16_000), "at most 67108864 pixels, got 16000 x 16000"),
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

/// A PNG whose header says another size.
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

/// A run from someone else: whatever is wrong with its files is named.
fn broken_runs(path: &Path) {
    let run = text(path);
    let predict = ["predict", run, "x.png"];
    let (model, config) = (path.join("model.safetensors"), path.join("config.toml"));
    let (weights, recipe) = (fs::read(&model).unwrap(), fs::read_to_string(&config).unwrap());
    let length = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let mut nan = weights.clone();
    nan[8 + length..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
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
        assert!(recipe.contains(from), "{from}: {recipe}");
        fs::write(&config, recipe.replacen(from, to, 1)).unwrap();
        assert_fails(&predict, &[says]);
    }
    fs::write(&config, [0xff, 0xfe, 0x00]).unwrap();
    assert_fails(&predict, &["config.toml", "expected a recipe"]);
    fs::write(&config, recipe).unwrap();
    // The images of the run are gone, or others.
    let data = path.with_file_name("own-folder");
    fs::remove_file(data.join("train/bar/00.png")).unwrap();
    let resume = ["train", "--resume", run];
    assert_fails(&resume, &["expected the 39 training images of the run, got 38"]);
    fs::rename(data.join("test/bar"), data.join("test/baz")).unwrap();
    assert_fails(&["eval", run], &["the same classes in train and test"]);
    fs::rename(data.join("train/bar"), data.join("train/baz")).unwrap();
    assert_fails(&["eval", run], &["the 2 classes of the run"]);
    fs::remove_dir_all(&data).unwrap();
    assert_fails(&["eval", run], &["own-folder"]);
}

#[cfg(unix)]
#[test]
fn a_killed_run_on_a_folder_ends_as_if_it_never_had_been() {
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

    // Without augmentation other images are seen; a plain CNN reads no poses.
    let plain = nothing("plain");
    succeeds(&train(text(&folder), text(&plain), &["--no-augment", "--model", "cnn"]));
    let config = fs::read_to_string(plain.join("config.toml")).unwrap();
    assert!(!config.contains("[photographs.augment]"), "{config}");
    let image = folder.join("bar/00.png");
    let shown = succeeds(&sren(&["predict", text(&plain), text(&image), "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["pose"], Value::Null);
    // Its own recipe trains on it again, and a full disk is told.
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

#[test]
fn folders_that_cannot_be_trained_on_are_named() {
    let out = nothing("refused");
    let run = text(&out);
    let fails = |data: &Path, parts: &[&str]| {
        assert_fails(&["train", "--data", text(data), "--size", "16", "--out", run], parts);
        assert!(!out.exists());
    };
    let folder = nothing("empty");
    fails(&folder, &["own-empty", "No such file"]);
    fs::create_dir_all(&folder).unwrap();
    fails(&folder, &["own-empty", "2 to 10000 folders", "got 0"]);
    let file = folder.join("file");
    fs::write(&file, b"x").unwrap();
    fails(&file, &["file"]);
    for class in ["a", "b"] {
        fs::create_dir_all(folder.join(class)).unwrap();
    }
    fails(&folder, &["own-empty/a", "at least 2 png or jpeg images", "got 0"]);
    for class in ["a", "b"] {
        (0..10).for_each(|i| write_image(&folder.join(class), class, i));
    }
    fs::write(folder.join("a/00.png"), b"x").unwrap();
    fs::write(folder.join("a/03.png"), b"x").unwrap();
    fs::write(folder.join("b/00.png"), b"x").unwrap();
    fails(&folder, &["own-empty", "at most 5 % of the files broken", "the first: "]);
    fs::create_dir_all(folder.join("train/a")).unwrap();
    fails(&folder, &["train", "2 to 10000 folders", "got 1"]);

    let data = text(&folder);
    for (arguments, says) in [
        (&["train", "--data", data, "--size", "4"][..], "a size of 8 to 1024"),
        (&["train", "--data", data, "--size", "100000"], "a size of 8 to 1024"),
        (&["train", "--preset", "photos"], "expected a folder of images (--data), got mnist"),
        (&["train", "--size", "32"], "images of your own (--data)"),
        (&["train", "--no-augment"], "images of your own (--data)"),
        (&["eval", data], "config.toml"),
        (&["predict", data, "x.png"], "config.toml"),
    ] {
        assert_fails(arguments, &[says]);
    }
    for arguments in [
        &["train", "--data"][..],
        &["train", "--data", data, "--no-such-flag"],
        &["train", "--augment", "--no-augment"],
        &["train", "--resume", "x", "--data", data],
        &["predict", data],
        &["predict", data, "x.png", "--top", "0"],
        &["eval", data, "--angles", "3"],
        &["eval", data, "--angles", "1,2", "--angle", "3"],
    ] {
        assert_eq!(sren(arguments).status.code(), Some(2), "{arguments:?}");
    }
    unreadable(&folder);
}

/// A folder that may not be read, unless whoever runs the test may read everything.
#[cfg(unix)]
fn unreadable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("a");
    let _ = fs::remove_dir_all(folder.join("train"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&path).is_err() {
        assert_fails(&["train", "--data", text(folder)], &["own-empty/a", "ermission denied"]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn unreadable(_: &Path) {}

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
    // The paper's recipe: only its length is for another machine.
    let paper = nothing("stl10-paper");
    let mut arguments = vec!["train", "--data", &data, "--preset", "stl10", "--epochs", "0"];
    arguments.extend(["--out", text(&paper)]);
    assert_fails(&arguments, &["at least 1 epoch"]);
}
