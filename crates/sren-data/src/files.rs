//! Image files: png, jpeg, webp, bmp, gif (its first frame) and tiff, grey or colour, 8 or 16 bit,
//! with or without alpha. The orientation that a camera notes in a file (EXIF) is applied.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use sren_math::Image;

use crate::error::{DataError, Result};
use crate::jpeg;

/// Largest side of an image that is decoded.
const MAX_SIDE: u32 = 32_768;
/// Most pixels of an image that is decoded,
const MAX_PIXELS: u64 = 1 << 28;
/// and of one that is wanted as large as it is.
const MAX_FULL_PIXELS: u64 = 1 << 26;
/// Most memory that a decoder may take.
const MAX_BYTES: u64 = 400 << 20;
/// Largest image file that is read.
pub(crate) const MAX_FILE: u64 = 1 << 28;
/// File name extensions of images, in lower case.
const EXTENSIONS: [&str; 8] = ["png", "jpg", "jpeg", "webp", "bmp", "gif", "tif", "tiff"];
/// The formats, as errors name them.
pub(crate) const FORMATS: &str = "png, jpeg, webp, bmp, gif or tiff";
/// An image is reduced before its values become floats if it is more than this many times as large
/// as needed,
const TOO_LARGE: usize = 4;
/// to this many times.
const ENOUGH: usize = 2;

/// An image, and the size of the file that it was read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReducedImage {
    /// One channel for grey, three for colour, values 0..1.
    pub image: Image,
    /// Height and width of the file.
    pub size: [usize; 2],
}

impl From<Image> for ReducedImage {
    /// An image as large as it is.
    fn from(image: Image) -> Self {
        let size = [image.height(), image.width()];
        Self { image, size }
    }
}

impl ReducedImage {
    /// Pixels of the file along one pixel of the image.
    pub fn factor(&self) -> f64 {
        let longer = self.image.height().max(self.image.width()).max(1);
        self.size[0].max(self.size[1]) as f64 / longer as f64
    }
}

/// Reads an image file: one channel for grey, three for colour, values 0..1. Transparent parts
/// become black.
pub fn read_image(path: &Path) -> Result<Image> {
    decode_image(&path.display().to_string(), &read_bounded(path, MAX_FILE)?)
}

/// Reads an image file that is needed `side` pixels large: one that is much larger is reduced while
/// it is decoded, to at least twice that. Saves time and memory.
pub fn read_reduced(path: &Path, side: usize) -> Result<ReducedImage> {
    decode_reduced(&path.display().to_string(), &read_bounded(path, MAX_FILE)?, side)
}

/// The content of a file. Returns an error if it is no regular file or has more than `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let fail = |source| DataError::Io { path: path.to_path_buf(), source };
    let name = || path.display().to_string();
    // Before it is opened: to open a pipe waits for its other end.
    if !path.metadata().map_err(fail)?.is_file() {
        let got = if path.is_dir() { "a folder" } else { "a pipe or device" };
        return Err(DataError::format(name(), "a file", got));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(DataError::format(name(), format!("at most {limit} bytes"), "more"));
    }
    Ok(bytes)
}

/// Decodes the content of an image file. `name` is used in errors.
pub fn decode_image(name: &str, bytes: &[u8]) -> Result<Image> {
    as_image(name, decode(name, bytes, None)?.0)
}

/// Decodes the content of an image file that is needed `side` pixels large, as [`read_reduced`].
pub fn decode_reduced(name: &str, bytes: &[u8], side: usize) -> Result<ReducedImage> {
    let (picture, size) = decode(name, bytes, Some(side.max(1)))?;
    Ok(ReducedImage { image: as_image(name, picture)?, size })
}

/// Height and width that the header of an image file says, before the camera's orientation is applied.
/// Nothing is decoded.
pub fn image_size(name: &str, bytes: &[u8]) -> Result<[usize; 2]> {
    let decoder = open(name, bytes)?.into_decoder().map_err(|e| unreadable(name, bytes, &e))?;
    let (width, height) = decoder.dimensions();
    Ok([height as usize, width as usize])
}

/// A reader of the file's format, with bounds on what it may take.
fn open<'a>(name: &str, bytes: &'a [u8]) -> Result<ImageReader<Cursor<&'a [u8]>>> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| unreadable(name, bytes, &e))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    Ok(reader)
}

fn unreadable(name: &str, bytes: &[u8], error: &dyn std::fmt::Display) -> DataError {
    let got = if bytes.is_empty() { "an empty file".into() } else { error.to_string() };
    DataError::format(name, format!("a {FORMATS} image"), got)
}

/// The picture, upright, and height and width of its file.
fn decode(name: &str, bytes: &[u8], side: Option<usize>) -> Result<(DynamicImage, [usize; 2])> {
    let fail = |e: &dyn std::fmt::Display| unreadable(name, bytes, e);
    let reader = open(name, bytes)?;
    let is_jpeg = reader.format() == Some(ImageFormat::Jpeg);
    if is_jpeg && !jpeg::is_complete(bytes) {
        return Err(fail(&"a jpeg file that is cut off"));
    }
    let mut decoder = reader.into_decoder().map_err(|e| fail(&e))?;
    let (width, height) = decoder.dimensions();
    let most = if side.is_some() { MAX_PIXELS } else { MAX_FULL_PIXELS };
    if u64::from(width) * u64::from(height) > most {
        let expected = format!("an image of at most {most} pixels");
        return Err(DataError::format(name, expected, format!("{width} x {height}")));
    }
    let longer = width.max(height) as usize;
    let wanted = side.filter(|side| longer / TOO_LARGE > *side).map(|side| ENOUGH * side);
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let reduced = match wanted {
        Some(least) if is_jpeg => jpeg::decode_reduced(bytes, least).map_err(|e| fail(&e))?,
        _ => None,
    };
    let mut picture = match reduced {
        Some(picture) => picture,
        None => DynamicImage::from_decoder(decoder).map_err(|e| fail(&e))?,
    };
    if let Some(wanted) = wanted.filter(|wanted| longer_side(&picture) > ENOUGH * wanted) {
        let wanted = u32::try_from(wanted).unwrap_or(MAX_SIDE);
        picture = picture.thumbnail(wanted, wanted);
    }
    picture.apply_orientation(orientation);
    let size = [height, width].map(|side| side as usize);
    let on_its_side = matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    );
    Ok((picture, if on_its_side { [size[1], size[0]] } else { size }))
}

fn longer_side(picture: &DynamicImage) -> usize {
    picture.width().max(picture.height()) as usize
}

fn as_image(name: &str, picture: DynamicImage) -> Result<Image> {
    let (height, width) = (picture.height() as usize, picture.width() as usize);
    let (channels, data) = values(picture);
    Image::new(height, width, channels, data)
        .map_err(|e| DataError::format(name, e.expected, e.got))
}

/// Channels (1 or 3) and values, channels last.
fn values(picture: DynamicImage) -> (usize, Vec<f32>) {
    // Files with floats may hold anything.
    let within = |v: f32| if v > 0.0 { v.min(1.0) } else { 0.0 };
    match picture.color() {
        ColorType::L8 | ColorType::L16 => (1, picture.to_luma32f().into_raw()),
        ColorType::La8 | ColorType::La16 => {
            (1, picture.to_luma_alpha32f().chunks_exact(2).map(|p| p[0] * p[1]).collect())
        }
        color if color.has_alpha() => {
            let rgba = picture.to_rgba32f();
            let blend = |p: &[f32]| [p[0], p[1], p[2]].map(|v| within(v) * within(p[3]));
            (3, rgba.chunks_exact(4).flat_map(blend).collect())
        }
        ColorType::Rgb8 | ColorType::Rgb16 => (3, picture.to_rgb32f().into_raw()),
        _ => (3, picture.to_rgb32f().iter().map(|v| within(*v)).collect()),
    }
}

/// Every image file below a folder, at any depth, sorted by path.
pub fn find_images(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(find_files(folder)?.images)
}

/// The files below a folder.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    /// Files that are images by their extension, sorted.
    pub(crate) images: Vec<PathBuf>,
    /// All others but hidden ones, sorted.
    pub(crate) others: Vec<PathBuf>,
}

/// Every file below a folder, at any depth.
pub(crate) fn find_files(folder: &Path) -> Result<FoundFiles> {
    let mut found = FoundFiles::default();
    collect_files(folder, MAX_DEPTH, &mut found)?;
    found.images.sort();
    found.others.sort();
    Ok(found)
}

/// Most folders inside each other: links may form a circle.
const MAX_DEPTH: usize = 32;

fn collect_files(folder: &Path, depth: usize, found: &mut FoundFiles) -> Result<()> {
    let fail = |source| DataError::Io { path: folder.to_path_buf(), source };
    if depth == 0 {
        let expected = format!("folders at most {MAX_DEPTH} deep");
        return Err(DataError::format(folder.display().to_string(), expected, "more"));
    }
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            if !hidden {
                collect_files(&path, depth - 1, found)?;
            }
        } else if is_image_name(&path) {
            found.images.push(path);
        } else if !hidden {
            found.others.push(path);
        }
    }
    Ok(())
}

/// Whether the file name has the extension of an image.
fn is_image_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    extension.is_some_and(|e| EXTENSIONS.contains(&e.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left half dark, right half bright, 24 x 10.
    fn halves() -> image::RgbImage {
        image::RgbImage::from_fn(24, 10, |x, _| image::Rgb([if x < 12 { 20 } else { 220 }; 3]))
    }

    fn encoded(format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        halves().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// A JPEG with an EXIF segment that notes `orientation`.
    fn photograph(orientation: u8) -> Vec<u8> {
        let jpeg = encoded(ImageFormat::Jpeg);
        let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
        let mut bytes = jpeg[..2].to_vec();
        bytes.extend([0xFF, 0xE1]);
        bytes.extend((exif.len() as u16 + 2).to_be_bytes());
        bytes.extend(exif);
        bytes.extend(&jpeg[2..]);
        bytes
    }

    #[test]
    fn all_formats_are_read() {
        use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
        for format in [Png, Jpeg, WebP, Bmp, Gif, Tiff] {
            let image = decode_image("x", &encoded(format)).unwrap();
            assert_eq!((image.height(), image.width()), (10, 24), "{format:?}");
            let at = |x: usize| image.data()[(5 * 24 + x) * image.channels()];
            assert!((at(2) - 20.0 / 255.0).abs() < 0.05 && (at(20) - 220.0 / 255.0).abs() < 0.05);
            let bytes = encoded(format);
            let cut = &bytes[..bytes.len() / 2];
            assert!(decode_image("x", cut).is_err(), "half a file, {format:?}");
        }
    }

    #[test]
    fn the_orientation_of_a_camera_is_applied() {
        for (orientation, size, bright) in [
            (1, (10, 24), [5, 20]),
            (3, (10, 24), [5, 3]),
            (6, (24, 10), [20, 5]),
            (8, (24, 10), [3, 5]),
        ] {
            let ReducedImage { image, size: file } =
                decode_reduced("x", &photograph(orientation), 64).unwrap();
            assert_eq!((image.height(), image.width()), size, "{orientation}");
            assert_eq!(file, [size.0, size.1], "{orientation}");
            let [y, x] = bright;
            assert!(image.data()[(y * size.1 + x) * 3] > 0.7, "{orientation}");
            let opposite = (size.0 - 1 - y) * size.1 + size.1 - 1 - x;
            assert!(image.data()[3 * opposite] < 0.3, "{orientation}");
        }
    }

    #[test]
    fn large_images_are_reduced_and_their_factor_is_known() {
        let large = image::RgbImage::from_fn(1200, 900, |x, _| image::Rgb([(x / 5) as u8; 3]));
        for format in [ImageFormat::Jpeg, ImageFormat::Png] {
            let mut bytes = Cursor::new(Vec::new());
            large.write_to(&mut bytes, format).unwrap();
            let bytes = bytes.into_inner();
            let reduced = decode_reduced("x", &bytes, 64).unwrap();
            let (image, factor) = (&reduced.image, reduced.factor());
            assert!((128..=300).contains(&image.width()), "{format:?}: {}", image.width());
            assert!((factor * image.width() as f64 - 1200.0).abs() < 1e-6, "{factor}");
            assert_eq!(reduced.size, [900, 1200]);
            let middle = image.data()[3 * (image.height() / 2 * image.width() + image.width() / 2)];
            assert!((middle - 120.0 / 255.0).abs() < 0.02, "{middle}");
            assert_eq!(image_size("x", &bytes).unwrap(), [900, 1200]);
            let whole = decode_reduced("x", &bytes, 600).unwrap();
            assert_eq!((whole.image.width(), whole.factor()), (1200, 1.0));
        }
    }

    #[test]
    fn what_is_no_file_is_named() {
        let error = read_image(Path::new("/")).unwrap_err().to_string();
        assert_eq!(error, "/: expected a file, got a folder");
    }
}
