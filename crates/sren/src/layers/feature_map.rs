//! Features and where on the image they lie.

use burn::tensor::{DType, Tensor};
use sren_math::Grid;

use crate::error::{Error, Result};

/// The features of a batch of images: values `[n, h, w, c]` at the positions of a grid. An image is
/// the feature map of its own pixels.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sren::{FeatureMap, Grid};
///
/// let images = Tensor::<4>::zeros([2, 56, 56, 3], &Device::flex());
/// assert_eq!(FeatureMap::from_images(images).grid, Grid::pixels(56, 56));
/// ```
#[derive(Debug, Clone)]
pub struct FeatureMap {
    /// `[n, h, w, c]`, channels last.
    pub values: Tensor<4>,
    /// Position of row and column on the images, in pixels.
    pub grid: Grid,
}

impl FeatureMap {
    /// Features on `grid`. Returns an error if the sizes differ.
    pub fn new(values: Tensor<4>, grid: Grid) -> Result<Self> {
        let [n, .., c] = values.dims();
        check_values("FeatureMap", &values, [n, grid.height, grid.width, c])?;
        Ok(Self { values, grid })
    }

    /// Images `[n, h, w, c]` as features of their pixels.
    pub fn from_images(images: Tensor<4>) -> Self {
        let [_, h, w, _] = images.dims();
        Self { values: images, grid: Grid::pixels(h, w) }
    }
}

/// Returns an error if a tensor is not f32 of shape `expected`.
pub(crate) fn check_values(
    operation: &'static str,
    values: &Tensor<4>,
    expected: [usize; 4],
) -> Result<()> {
    if values.dims() != expected {
        let got = format!("{:?}", values.dims());
        return Err(Error::shape(operation, format!("input of {expected:?}"), got));
    }
    if values.dtype() != DType::F32 {
        return Err(Error::shape(operation, "values of F32", format!("{:?}", values.dtype())));
    }
    Ok(())
}
