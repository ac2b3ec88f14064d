//! Images for sren: bundled MNIST, image files and folders, STL-10; test sets, augmentation, batches.

mod batch;
mod dataset;
mod epoch;
mod error;
mod files;
mod idx;
mod image_folder;
mod letterbox;
mod mnist;
mod padding;
mod photograph;
mod random_transform;
mod source;
pub mod stl10;
mod test_set;

pub use batch::Batch;
pub use dataset::{CANVAS, Dataset};
pub use epoch::{Augmentation, PoseJitter, TrainingSplit, draw_positions};
pub use error::{DataError, Result};
pub use files::{decode_image, find_images, read_bounded, read_image};
pub use idx::Idx;
pub use image_folder::{IMAGE_BUDGET, ImageFolder, Loaded};
pub use letterbox::{Letterbox, in_channels};
pub use mnist::{Mnist, Split};
pub use padding::{Padding, masked};
pub use photograph::PhotographAugmentation;
pub use random_transform::RandomTransform;
pub use source::Source;
pub use test_set::TestSet;
