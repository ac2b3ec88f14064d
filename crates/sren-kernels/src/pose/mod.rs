//! The pose half of the crate: from a batch of images to a field of local frames.

mod field;

pub use field::PoseField;
