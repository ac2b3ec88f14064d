//! Images for [sren](https://docs.rs/sren): where they come from, how they are prepared, and how
//! batches are drawn from them.
//!
//! | step | items |
//! |---|---|
//! | read | [`Mnist`] (bundled), [`ImageFolder`], [`stl10`], [`read_image`]; [`Source`] names one of them |
//! | prepare | [`Letterbox`] to one size, [`Padding`] onto a canvas |
//! | check | [`Manifest`]: names, sizes and checksums of the files, to find what changed |
//! | hold | [`Dataset`]: images of one size, labels, classes; bytes in memory, the rest in files |
//! | split | [`Split`] into training and test, [`TrainingSplit`] into training and validation |
//! | transform | [`TestSet`] and [`RandomTransform`] for tests, [`Augmentation`] and [`PhotoAugmentation`] for training |
//! | batch | [`Batch`] `[n, h, w, c]`, f32 in 0..1, with labels and transforms |
//!
//! One epoch of training batches of digits, augmented as in the paper:
//!
//! ```
//! use sren_data::{Augmentation, Dataset, Split, TrainingSplit};
//!
//! let (seed, epoch) = (1, 0);
//! let digits = Dataset::mnist(Split::Test)?;
//! let split = TrainingSplit::new(digits.len(), 1_000, 100, seed)?;
//! for indices in split.order(seed, epoch).chunks(500) {
//!     let draw = |index| Augmentation::PAPER.draw(seed, epoch, index);
//!     let batch = digits.batch(indices, draw)?;
//!     assert_eq!(batch.shape, [500, 56, 56, 1]);
//!     assert_eq!((batch.labels.len(), batch.transforms.len()), (500, 500));
//! }
//! # Ok::<(), sren_data::DataError>(())
//! ```
//!
//! All draws follow from seed, epoch and index: a batch is the same on any number of threads.
//! Files may come from anyone: wrong content gives a [`DataError`], never a panic.

mod augmentation;
mod augmentation_policy;
mod batch;
mod dataset;
mod error;
mod files;
mod idx;
mod image_folder;
mod jpeg;
mod letterbox;
mod manifest;
mod mnist;
mod named_image;
mod padding;
mod photo_augmentation;
mod random_stream;
mod random_transform;
mod resize;
mod source;
pub mod stl10;
mod test_set;
mod training_split;

pub use augmentation::{Augmentation, PoseJitter, draw_positions};
pub use augmentation_policy::AugmentationPolicy;
pub use batch::Batch;
pub use dataset::{CANVAS, Dataset};
pub use error::{DataError, Result};
pub use files::{
    ReducedImage, decode_image, decode_reduced, find_images, image_size, read_bounded, read_image,
    read_reduced,
};
pub use idx::Idx;
pub use image_folder::{IMAGE_BUDGET, ImageFolder, Loaded};
pub use letterbox::{Letterbox, in_channels};
pub use manifest::{FileRecord, Manifest};
pub use mnist::{Mnist, Split};
pub use named_image::NamedImage;
pub use padding::{Padding, circular_mask, masked};
pub use photo_augmentation::PhotoAugmentation;
pub use random_transform::RandomTransform;
pub use resize::resize;
pub use source::Source;
pub use test_set::TestSet;
pub use training_split::TrainingSplit;
