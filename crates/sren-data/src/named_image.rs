//! Images by the names that commands take: files, and bundled test digits as `mnist:N` and
//! `mnist:A-B`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sren_math::Image;

use crate::error::{DataError, Result};
use crate::files::{ReducedImage, read_reduced};
use crate::mnist::{Mnist, Split};

/// What names of digits begin with.
const DIGITS: &str = "mnist:";

/// A file, or a digit of the bundled test set.
///
/// ```
/// use sren_data::NamedImage;
///
/// let digits = NamedImage::parse("mnist:3-5")?;
/// assert_eq!(digits.len(), 3);
/// assert_eq!(digits[1].to_string(), "mnist:4");
/// assert_eq!(digits[1].read(64)?.image.width(), 28);
/// # Ok::<(), sren_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedImage {
    /// An image file.
    File(PathBuf),
    /// A digit of the bundled test set, by its number.
    Digit(usize),
}

impl NamedImage {
    /// The images of a name: `mnist:N` is digit N, `mnist:A-B` are the digits A to B, anything else,
    /// and a file that has such a name, is a file.
    pub fn parse(name: &str) -> Result<Vec<Self>> {
        let numbers = name.strip_prefix(DIGITS).filter(|_| !Path::new(name).exists());
        let Some(numbers) = numbers else {
            return Ok(vec![Self::File(name.into())]);
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let count = digits()?.len();
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number < count);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                Ok((first..=last).map(Self::Digit).collect())
            }
            _ => {
                let last = count - 1;
                let expected = format!("mnist:0 to mnist:{last}, or a range as mnist:0-{last}");
                Err(DataError::format(name, expected, format!("mnist:{numbers}")))
            }
        }
    }

    /// Reads the image, needed `side` pixels large ([`read_reduced`]). A digit has 28 x 28 pixels.
    pub fn read(&self, side: usize) -> Result<ReducedImage> {
        match self {
            Self::File(path) => read_reduced(path, side),
            Self::Digit(index) => {
                Ok(ReducedImage { image: digit(*index)?, size: [Mnist::SIDE; 2] })
            }
        }
    }
}

impl std::fmt::Display for NamedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Digit(index) => write!(f, "{DIGITS}{index}"),
        }
    }
}

fn digit(index: usize) -> Result<Image> {
    let digits = digits()?;
    digits.image(index).ok_or_else(|| {
        let expected = format!("a digit below {}", digits.len());
        DataError::format("mnist", expected, index.to_string())
    })
}

/// The bundled test digits, unpacked once.
fn digits() -> Result<&'static Mnist> {
    static DIGITS: OnceLock<Mnist> = OnceLock::new();
    match DIGITS.get() {
        Some(digits) => Ok(digits),
        None => {
            let digits = Mnist::load(Split::Test)?;
            Ok(DIGITS.get_or_init(|| digits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_or_digits() {
        let file = NamedImage::File("a-3.png".into());
        assert_eq!(NamedImage::parse("a-3.png").unwrap(), [file]);
        assert_eq!(NamedImage::parse("mnist:7").unwrap(), [NamedImage::Digit(7)]);
        assert_eq!(NamedImage::parse("mnist:0-9999").unwrap().len(), 10_000);
        for wrong in ["mnist:", "mnist:x", "mnist:10000", "mnist:5-3", "mnist:1-2-3", "mnist:-1"] {
            let error = NamedImage::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("expected mnist:0 to mnist:9999"), "{error}");
        }
        assert!(NamedImage::Digit(10_000).read(28).is_err());
    }
}
