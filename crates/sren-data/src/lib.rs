//! Images for sren: bundled MNIST, image files and folders; test sets, augmentation, batches.

mod batch;
mod dataset;
mod epoch;
mod error;
mod files;
mod idx;
mod mnist;
mod test_set;

pub use batch::Batch;
pub use dataset::{CANVAS, Dataset};
pub use epoch::{Augmentation, PoseJitter, TrainingSplit};
pub use error::{DataError, Result};
pub use files::{decode_image, find_images, read_image};
pub use idx::Idx;
pub use mnist::{Mnist, Split};
pub use test_set::TestSet;
