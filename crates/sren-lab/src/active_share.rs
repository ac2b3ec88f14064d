//! The share of positions that a network computes: those that have a pose.

use burn::tensor::{Tensor, TensorData};
use sren::Similarity;
use sren::models::Network;
use sren_data::Dataset;

use crate::error::Result;
use crate::inference::inference_device;

/// Height and width of a grid, and the share of its positions that is computed.
pub type ActiveShare = ([usize; 2], f64);

/// The share of every grid of `network`, the mean over the first `count` of `images`; none for a
/// network that computes all positions.
pub fn active_shares(
    network: &Network,
    images: &Dataset,
    count: usize,
) -> Result<Vec<ActiveShare>> {
    if !network.classifier().computes_active_only() {
        return Ok(Vec::new());
    }
    let indices: Vec<usize> = (0..count.min(images.len())).collect();
    let batch = images.batch(&indices, |_| Ok(Similarity::IDENTITY))?;
    let data = TensorData::new(batch.images, batch.shape);
    let fields = network.pose_fields(&Tensor::from_data(data, &inference_device()))?;
    let share = |field: &sren::PoseField| {
        let active = field.confidence().iter().filter(|confidence| **confidence > 0.0).count();
        let grid = field.grid();
        ([grid.height, grid.width], active as f64 / field.confidence().len().max(1) as f64)
    };
    Ok(fields.iter().map(share).collect())
}
