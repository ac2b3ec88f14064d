//! MNIST, bundled: decoded from the program itself, nothing is downloaded.

use std::io::Read;

use sren_math::Image;

use crate::error::{DataError, Result};
use crate::idx::Idx;

/// Which part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// The 60,000 training images.
    Train,
    /// The 10,000 test images.
    Test,
}

/// A bundled file and the CRC-32 of its unpacked content.
struct Bundled {
    name: &'static str,
    packed: &'static [u8],
    crc32: u32,
}

macro_rules! bundled {
    ($name:literal, $crc32:literal) => {
        Bundled {
            name: $name,
            packed: include_bytes!(concat!("../mnist/", $name, ".gz")),
            crc32: $crc32,
        }
    };
}

const TRAIN: [Bundled; 2] = [
    bundled!("train-images-idx3-ubyte", 0xe9f4_d8b3),
    bundled!("train-labels-idx1-ubyte", 0xe0cb_4ad2),
];
const TEST: [Bundled; 2] = [
    bundled!("t10k-images-idx3-ubyte", 0x9137_3bdf),
    bundled!("t10k-labels-idx1-ubyte", 0x4ab9_eff9),
];

/// Handwritten digits, 28 x 28 grey pixels, with their labels.
#[derive(Debug, Clone)]
pub struct Mnist {
    pixels: Idx,
    labels: Idx,
}

impl Mnist {
    /// Side of a digit image.
    pub const SIDE: usize = 28;

    /// The bundled digits.
    pub fn load(split: Split) -> Result<Self> {
        let ([images, labels], count) = match split {
            Split::Train => (TRAIN, 60_000),
            Split::Test => (TEST, 10_000),
        };
        let pixels = Idx::parse(images.name, &unpack(&images)?, 3)?;
        let side = Self::SIDE;
        if pixels.sizes() != [count, Self::SIDE, Self::SIDE] {
            let expected = format!("{count} images of {side} x {side}");
            return Err(DataError::format(images.name, expected, format!("{:?}", pixels.sizes())));
        }
        let digits = Idx::parse(labels.name, &unpack(&labels)?, 1)?;
        if digits.sizes() != [count] {
            let expected = format!("{count} labels");
            return Err(DataError::format(labels.name, expected, format!("{:?}", digits.sizes())));
        }
        if let Some(label) = digits.values().iter().find(|label| **label > 9) {
            return Err(DataError::format(labels.name, "labels 0 to 9", format!("{label}")));
        }
        Ok(Self { pixels, labels: digits })
    }

    /// Number of digits.
    pub fn len(&self) -> usize {
        self.labels.values().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label of a digit, `None` beyond the last.
    pub fn label(&self, index: usize) -> Option<u8> {
        self.labels.values().get(index).copied()
    }

    /// A digit, 28 x 28 with values 0..1, `None` beyond the last.
    pub fn image(&self, index: usize) -> Option<Image> {
        let size = Self::SIDE * Self::SIDE;
        let start = index.checked_mul(size)?;
        let bytes = self.pixels.values().get(start..start + size)?;
        let data = bytes.iter().map(|v| f32::from(*v) / 255.0).collect();
        Image::new(Self::SIDE, Self::SIDE, 1, data).ok()
    }

    /// The labels of all digits.
    pub fn labels(&self) -> &[u8] {
        self.labels.values()
    }

    /// The pixels of all digits, `[n, 28, 28]`.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels.into_values()
    }
}

/// The content of a bundled file, checked.
fn unpack(file: &Bundled) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(file.packed)
        .read_to_end(&mut content)
        .map_err(|e| DataError::format(file.name, "a gzip file", e.to_string()))?;
    let crc32 = crc32fast::hash(&content);
    if crc32 != file.crc32 {
        return Err(DataError::format(
            file.name,
            format!("checksum {:08x}", file.crc32),
            format!("{crc32:08x}"),
        ));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_mnist_is_there() {
        for (split, count, first) in [(Split::Train, 60_000, 5), (Split::Test, 10_000, 7)] {
            let digits = Mnist::load(split).unwrap();
            assert_eq!((digits.len(), digits.label(0)), (count, Some(first)));
            let image = digits.image(count - 1).unwrap();
            assert!(image.data().iter().sum::<f32>() > 10.0);
            assert!(digits.image(count).is_none() && digits.image(usize::MAX).is_none());
        }
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let [_, labels] = TEST;
        let wrong_sum = Bundled { crc32: labels.crc32 ^ 1, ..labels };
        assert!(unpack(&wrong_sum).unwrap_err().to_string().contains("expected checksum"));
        let cut = Bundled { packed: &labels.packed[..labels.packed.len() / 2], ..labels };
        assert!(unpack(&cut).unwrap_err().to_string().contains("expected a gzip file"));
    }
}
