//! A batch `[n, h, w, c]`.

use sren_math::Similarity;

/// Images, their labels, and the transforms they were drawn with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Batch {
    /// Values 0..1, `[n, h, w, c]`.
    pub images: Vec<f32>,
    /// Number of images, height, width, channels.
    pub shape: [usize; 4],
    /// The class of each image.
    pub labels: Vec<u32>,
    /// The transform of each image about the centre of its canvas, in the order of the batch.
    pub transforms: Vec<Similarity>,
}
