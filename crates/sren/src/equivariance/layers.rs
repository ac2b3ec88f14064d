//! What is measured: feature maps by name, and images under a transform.

use burn::tensor::{Device, Tensor, TensorData};
use sren_math::{About, Image, Interpolation, Similarity, warp};

use crate::error::{Error, Result};
use crate::layers::FeatureMap;
use crate::models::Network;

/// A layer's features by name.
pub type NamedFeatures = (String, FeatureMap);

/// The feature maps of a network for `images` `[n, h, w, c]`.
pub fn network_layers(network: &Network, images: Tensor<4>) -> Result<Vec<NamedFeatures>> {
    let frames = network.frames(&images)?;
    network.feature_maps(images, &frames)
}

/// Images of one size, each transformed about its centre, as a batch `[n, h, w, c]`. Read between
/// pixels by cubic convolution, which blurs less than bilinear weights.
pub fn warped(images: &[Image], transform: &Similarity, device: &Device) -> Result<Tensor<4>> {
    const OPERATION: &str = "equivariance::warped";
    let Some(first) = images.first() else {
        return Err(Error::shape(OPERATION, "at least 1 image", "none"));
    };
    let size = |image: &Image| [image.height(), image.width(), image.channels()];
    let shape @ [h, w, c] = size(first);
    let mut data = Vec::with_capacity(images.len() * h * w * c);
    for image in images {
        if size(image) != shape {
            let (expected, got) = (format!("images of {shape:?}"), format!("{:?}", size(image)));
            return Err(Error::shape(OPERATION, expected, got));
        }
        data.extend_from_slice(warp(image, transform, About::Centre, Interpolation::Cubic).data());
    }
    Ok(Tensor::from_data(TensorData::new(data, [images.len(), h, w, c]), device))
}
