//! STL-10's own binary files: images of 96 x 96 pixels, three planes (red, green, blue), each
//! column by column; labels 1 to 10, one byte each.

use std::path::Path;

use rayon::prelude::*;

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::files::read_bounded;
use crate::image_folder::Loaded;
use crate::manifest::{FileRecord, Manifest};
use crate::mnist::Split;
use crate::padding::Padding;

/// Side of an image.
pub const SIDE: usize = 96;
const PLANE: usize = SIDE * SIDE;
/// Largest file that is read. STL-10's largest has 221 MB.
const MAX_BYTES: u64 = 1 << 30;
/// The classes, first to last.
const CLASSES: [&str; 10] =
    ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"];

/// The images of `split` below `folder`, on a square canvas with sides of `canvas` pixels.
pub fn load_stl10(folder: &Path, split: Split, canvas: usize) -> Result<Loaded> {
    let part = match split {
        Split::Train => "train",
        Split::Test => "test",
    };
    let mut manifest = Manifest::default();
    let mut read = |kind: &str| -> Result<(String, Vec<u8>)> {
        let file = format!("{part}_{kind}.bin");
        let path = folder.join(&file);
        let content = read_bounded(&path, MAX_BYTES)?;
        manifest.push(FileRecord::new(Path::new(&file), &content));
        Ok((path.display().to_string(), content))
    };
    let (images, labels) = (read("X")?, read("y")?);
    let pixels = parse_images(&images.0, &images.1)?;
    let labels = parse_labels(&labels.0, &labels.1)?;
    let classes = CLASSES.map(String::from).to_vec();
    let name = format!("stl10:{}", folder.display());
    let images = Dataset::new(name, classes, [SIDE, SIDE, 3], pixels, labels)?
        .with_padding(Padding { canvas: [canvas; 2], circular_mask: true })?;
    Ok(Loaded { manifest, ..images.into() })
}

/// From column-major planes to row-major pixels, `[n, 96, 96, 3]`. `name` is used in errors.
pub fn parse_images(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(3 * PLANE) {
        let expected = format!("images of {} bytes each, at least 1", 3 * PLANE);
        return Err(DataError::format(name, expected, format!("{} bytes", bytes.len())));
    }
    let mut pixels = vec![0; bytes.len()];
    let images = pixels.par_chunks_exact_mut(3 * PLANE).zip(bytes.par_chunks_exact(3 * PLANE));
    images.for_each(|(to, from)| {
        for (at, pixel) in to.chunks_exact_mut(3).enumerate() {
            let (row, column) = (at / SIDE, at % SIDE);
            for (c, v) in pixel.iter_mut().enumerate() {
                *v = from[c * PLANE + column * SIDE + row];
            }
        }
    });
    Ok(pixels)
}

/// Labels 1 to 10 to classes 0 to 9. `name` is used in errors.
pub fn parse_labels(name: &str, bytes: &[u8]) -> Result<Vec<u32>> {
    if let Some(at) = bytes.iter().position(|label| !(1..=10).contains(label)) {
        let got = format!("{} at {at}", bytes[at]);
        return Err(DataError::format(name, "labels 1 to 10", got));
    }
    Ok(bytes.iter().map(|label| u32::from(*label) - 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn column_major_planes_become_row_major_pixels() {
        let mut bytes = vec![0; 2 * 3 * PLANE];
        // Second image, green, row 5, column 7.
        bytes[3 * PLANE + PLANE + 7 * SIDE + 5] = 200;
        let pixels = parse_images("x", &bytes).unwrap();
        assert_eq!(pixels[3 * PLANE + 3 * (5 * SIDE + 7) + 1], 200);
        assert_eq!(pixels.iter().filter(|v| **v > 0).count(), 1);
    }

    #[test]
    fn wrong_sizes_and_labels_are_named() {
        let error = parse_images("x", &[0; 5]).unwrap_err().to_string();
        assert_eq!(error, "x: expected images of 27648 bytes each, at least 1, got 5 bytes");
        let error = parse_labels("y", &[1, 10, 0]).unwrap_err().to_string();
        assert_eq!(error, "y: expected labels 1 to 10, got 0 at 2");
        assert!(parse_labels("y", &[11]).is_err());
    }

    proptest! {
        #[test]
        fn any_number_of_bytes_gives_a_result(whole in 0usize..4, rest in 0usize..3, label in any::<u8>()) {
            let bytes = vec![9; whole * 3 * PLANE + rest];
            prop_assert_eq!(parse_images("x", &bytes).is_ok(), whole > 0 && rest == 0);
            prop_assert_eq!(parse_labels("x", &[label]).is_ok(), (1..=10).contains(&label));
        }
    }
}
