//! Image files: png and jpeg, grey or colour, 8 or 16 bit, with or without alpha.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use image::{ColorType, DynamicImage, ImageDecoder, ImageReader, Limits};
use sren_math::Image;

use crate::error::{DataError, Result};

/// Largest side of an image that is decoded.
const MAX_SIDE: u32 = 16_384;
/// Most pixels of an image that is decoded.
const MAX_PIXELS: u64 = 1 << 26;
/// Most memory that a decoder may take.
const MAX_BYTES: u64 = 1 << 29;
/// Largest image file that is read.
const MAX_FILE: u64 = 1 << 28;
/// File name extensions of images, in lower case.
const EXTENSIONS: [&str; 3] = ["png", "jpg", "jpeg"];

/// Reads an image file: one channel for grey, three for colour, values 0..1. Transparent parts
/// become black.
pub fn read_image(path: &Path) -> Result<Image> {
    decode_image(&path.display().to_string(), &read_bounded(path, MAX_FILE)?)
}

/// The content of a file. Returns an error if it has more than `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let fail = |source| DataError::Io { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        let expected = format!("at most {limit} bytes");
        return Err(DataError::format(path.display().to_string(), expected, "more"));
    }
    Ok(bytes)
}

/// Decodes the content of an image file. `name` is used in errors.
pub fn decode_image(name: &str, bytes: &[u8]) -> Result<Image> {
    let fail = |e: &dyn std::fmt::Display| {
        let got = if bytes.is_empty() { "an empty file".into() } else { e.to_string() };
        DataError::format(name, "a png or jpeg image", got)
    };
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| fail(&e))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|e| fail(&e))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        let expected = format!("an image of at most {MAX_PIXELS} pixels");
        return Err(DataError::format(name, expected, format!("{width} x {height}")));
    }
    let picture = DynamicImage::from_decoder(decoder).map_err(|e| fail(&e))?;
    let (height, width) = (picture.height() as usize, picture.width() as usize);
    let (channels, data) = values(picture);
    Image::new(height, width, channels, data)
        .map_err(|e| DataError::format(name, e.expected, e.got))
}

/// Channels (1 or 3) and values, channels last.
fn values(picture: DynamicImage) -> (usize, Vec<f32>) {
    match picture.color() {
        ColorType::L8 | ColorType::L16 => (1, picture.to_luma32f().into_raw()),
        ColorType::La8 | ColorType::La16 => {
            (1, picture.to_luma_alpha32f().chunks_exact(2).map(|p| p[0] * p[1]).collect())
        }
        color if color.has_alpha() => {
            let rgba = picture.to_rgba32f();
            let blend = |p: &[f32]| [p[0] * p[3], p[1] * p[3], p[2] * p[3]];
            (3, rgba.chunks_exact(4).flat_map(blend).collect())
        }
        _ => (3, picture.to_rgb32f().into_raw()),
    }
}

/// Every image file below a folder, at any depth, sorted by path.
pub fn find_images(folder: &Path) -> Result<Vec<PathBuf>> {
    let fail = |source| DataError::Io { path: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            found.extend(find_images(&path)?);
        } else if is_image_name(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the file name has the extension of an image.
pub(crate) fn is_image_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    extension.is_some_and(|e| EXTENSIONS.contains(&e.as_str()))
}
