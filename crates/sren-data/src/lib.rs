//! Images for sren: bundled MNIST, image files and folders.

mod error;
mod files;
mod idx;
mod mnist;

pub use error::{DataError, Result};
pub use files::{decode_image, find_images, read_image};
pub use idx::Idx;
pub use mnist::{Mnist, Split};
