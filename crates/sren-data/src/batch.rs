//! A batch `[n, h, w, c]`.

/// Images and their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Values 0..1, `[n, h, w, c]`.
    pub images: Vec<f32>,
    /// Number of images, height, width, channels.
    pub shape: [usize; 4],
    /// The class of each image.
    pub labels: Vec<u32>,
}
