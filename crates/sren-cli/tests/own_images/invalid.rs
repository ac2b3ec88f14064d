//! Invalid folders and flags.

use std::fs;
use std::path::Path;

use crate::support::{assert_fails, nothing, sren, text};
use crate::written::write_image;

#[test]
fn errors_name_folders_that_cannot_be_trained_on() {
    let out = nothing("invalid");
    let run = text(&out);
    let fails = |data: &Path, parts: &[&str]| {
        assert_fails(&["train", "--data", text(data), "--size", "16", "--out", run], parts);
        assert!(!out.exists());
    };
    let folder = nothing("empty");
    fails(&folder, &["own_images-empty", "No such file"]);
    fs::create_dir_all(&folder).unwrap();
    fails(&folder, &["own_images-empty", "2 to 10000 folders", "got 0"]);
    let file = folder.join("file");
    fs::write(&file, b"x").unwrap();
    fails(&file, &["file"]);
    for class in ["a", "b"] {
        fs::create_dir_all(folder.join(class)).unwrap();
    }
    fails(
        &folder,
        &["own_images-empty/a", "at least 2 png, jpeg, webp, bmp, gif or tiff images", "got 0"],
    );
    for class in ["a", "b"] {
        (0..10).for_each(|i| write_image(&folder.join(class), class, i));
    }
    fs::write(folder.join("a/00.png"), b"x").unwrap();
    fs::write(folder.join("a/03.png"), b"x").unwrap();
    fs::write(folder.join("b/00.png"), b"x").unwrap();
    fails(&folder, &["own_images-empty", "at most 5 % of the files broken", "the first: "]);
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
        assert_fails(
            &["train", "--data", text(folder)],
            &["own_images-empty/a", "ermission denied"],
        );
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn unreadable(_: &Path) {}
