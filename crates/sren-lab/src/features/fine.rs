//! A network on a finer grid, so that its feature maps can be shown.

use sren::Weights;
use sren::models::{Network, NetworkConfig};

use crate::error::Result;
use crate::inference::inference_device;

/// Pixels between the positions of networks with independent positions,
const FINE: usize = 2;
/// and most of them along a side: features of all positions are in memory at once.
const MOST_FINE: usize = 64;

/// The network on a finer grid for images of this longer side, where its positions are independent of
/// each other and not too many; otherwise the same.
pub(crate) fn fine_network(
    network: &Network,
    config: &NetworkConfig,
    longer: usize,
) -> Result<Network> {
    let (_, stride, _) = config.backbone.sampling();
    let finer = match config.backbone.has_independent_positions() && longer <= MOST_FINE * FINE {
        true => config.finer(stride / FINE),
        false => None,
    };
    let Some(config) = finer else { return Ok(network.clone()) };
    let config = config.with_equivariance(network.equivariance());
    Ok(Weights::of(network).apply(config.init(&inference_device())?)?)
}
