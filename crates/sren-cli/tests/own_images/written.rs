//! Images that are written for a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{nothing, sren};

/// Blobs are soft and red, bars are hard and blue; the kind of file and its size change with `i`.
pub(crate) fn write_image(folder: &Path, class: &str, i: u32) {
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
pub(crate) fn split_folder(test: &str) -> PathBuf {
    let path = nothing(test);
    for (class, training) in [("bar", 16), ("blob", 24)] {
        (0..training).for_each(|i| write_image(&path.join("train").join(class), class, i));
        (30..36).for_each(|i| write_image(&path.join("test").join(class), class, i));
    }
    path
}

pub(crate) fn train(data: &str, run: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["train", "--data", data, "--size", "16", "--batch", "8"];
    arguments.extend(["--threads", "2", "--out", run]);
    arguments.extend(more);
    if !more.contains(&"--epochs") {
        arguments.extend(["--epochs", "4"]);
    }
    sren(&arguments)
}
