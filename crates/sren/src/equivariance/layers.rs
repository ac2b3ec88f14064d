//! What is measured: feature maps by name, and images under a transform.

use burn::tensor::{Device, Tensor, TensorData};
use sren_math::{About, Grid, Image, Interpolation, Similarity, warp};

use crate::error::{Error, Result};
use crate::models::SimResNet;

/// One layer's features of a batch of images.
#[derive(Debug, Clone)]
pub struct FeatureMap {
    /// The layer.
    pub name: String,
    /// `[n, h, w, c]`.
    pub values: Tensor<4>,
    /// Where on the images the positions lie.
    pub grid: Grid,
}

impl FeatureMap {
    /// The features `values` `[n, h, w, c]` of layer `name` on `grid`.
    pub fn new(name: impl Into<String>, values: Tensor<4>, grid: Grid) -> Self {
        Self { name: name.into(), values, grid }
    }
}

/// The feature maps of a network: `window.0` and so on where the stem has layers inside, `stem`, then
/// `blocks.0` and so on.
pub fn network_layers(network: &SimResNet, images: Tensor<4>) -> Result<Vec<FeatureMap>> {
    let frames = network.frames(&images)?;
    let windows = network.window_maps(&images, &frames)?;
    let maps = network.feature_maps(images, &frames)?;
    let grid = maps[0].1;
    let windows = windows.into_iter().enumerate();
    let windows = windows.map(|(i, values)| FeatureMap::new(format!("window.{i}"), values, grid));
    Ok(windows.chain(named(maps)).collect())
}

/// A network's [feature maps](SimResNet::feature_maps) by name: `stem`, then `blocks.0` and so on.
pub fn named(maps: Vec<(Tensor<4>, Grid)>) -> impl Iterator<Item = FeatureMap> {
    maps.into_iter().enumerate().map(|(index, (values, grid))| {
        let name = index.checked_sub(1).map_or("stem".into(), |b| format!("blocks.{b}"));
        FeatureMap { name, values, grid }
    })
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
