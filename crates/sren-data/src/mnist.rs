//! MNIST, bundled: decoded from the program itself, nothing is downloaded.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;
use sren_math::Image;

use crate::error::{DataError, Result};
use crate::idx::Idx;

/// Training or test images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Training images, 60,000 of MNIST.
    Train,
    /// Test images, 10,000 of MNIST.
    Test,
}

/// A bundled file, packed by `scripts/pack_mnist.sh`.
struct Bundled {
    name: &'static str,
    packed: &'static [u8],
}

macro_rules! bundled {
    ($name:literal) => {
        Bundled { name: $name, packed: include_bytes!(concat!("../mnist/", $name, ".zst")) }
    };
}

const TRAIN: [Bundled; 2] =
    [bundled!("train-images-idx3-ubyte"), bundled!("train-labels-idx1-ubyte")];
const TEST: [Bundled; 2] = [bundled!("t10k-images-idx3-ubyte"), bundled!("t10k-labels-idx1-ubyte")];

/// Handwritten digits, 28 x 28 grey pixels, with their labels.
///
/// ```
/// use sren_data::{Mnist, Split};
///
/// let digits = Mnist::load(Split::Test)?;
/// assert_eq!((digits.len(), digits.label(0)), (10_000, Some(7)));
/// let image = digits.image(0).expect("there are 10,000");
/// assert_eq!((image.height(), image.width(), image.channels()), (28, 28, 1));
/// # Ok::<(), sren_data::DataError>(())
/// ```
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
        if pixels.sizes() != [count, side, side] {
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
        let bytes = self.pixels.values().get(start..start.checked_add(size)?)?;
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

/// The content of a bundled file. Zstd's own checksum must be there and match.
fn unpack(file: &Bundled) -> Result<Vec<u8>> {
    let fail = |e: String| DataError::format(file.name, "a zstd file", e);
    let mut decoder = StreamingDecoder::new(file.packed).map_err(|e| fail(e.to_string()))?;
    let mut content = Vec::new();
    decoder.read_to_end(&mut content).map_err(|e| fail(e.to_string()))?;
    let decoder = decoder.into_frame_decoder();
    let sum = decoder.get_calculated_checksum();
    if sum.is_none() || sum != decoder.get_checksum_from_data() {
        return Err(DataError::format(file.name, "its checksum", "another"));
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
            assert!(digits.image(usize::MAX / 784).is_none());
        }
    }

    /// The sums of the unpacked files as they were first published.
    #[test]
    fn files_are_the_originals() {
        let files = TRAIN.into_iter().chain(TEST);
        for (file, sum) in files.zip([
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ]) {
            let content = unpack(&file).unwrap();
            assert_eq!(format!("{:x}", md5::compute(content)), sum, "{}", file.name);
        }
    }

    #[test]
    fn a_damaged_file_gives_an_error() {
        let [_, Bundled { name, packed }] = TEST;
        let damaged = |packed: Vec<u8>| unpack(&Bundled { name, packed: packed.leak() });
        let error = |packed| damaged(packed).unwrap_err().to_string();
        let mut wrong_sum = packed.to_vec();
        *wrong_sum.last_mut().unwrap() ^= 1;
        assert!(error(wrong_sum).contains("expected its checksum"));
        assert!(error(packed[..packed.len() / 2].to_vec()).contains("expected a zstd file"));
        assert!(error(Vec::new()).contains("expected a zstd file"));
    }
}
