//! The geometry of a network: grids, parameters and multiply-adds of every layer.
//!
//! Each part of a configuration traces its layers onto a [`Geometry`], which also bounds them: a
//! configuration may come from someone else's file, and what it asks for is counted before anything
//! of it is allocated.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use sren_math::Grid;

use crate::error::{Error, Result};
use crate::pose::PoseEstimatorConfig;

const OPERATION: &str = "NetworkConfig";
/// Most learned values.
const MAX_PARAMETERS: usize = 1 << 27;
/// Most taps along one side of a kernel.
const MAX_KERNEL: usize = 63;
/// Most pixels between two positions.
const MAX_STRIDE: usize = 256;
/// Most values of one layer for one image.
const MAX_FEATURES: usize = 1 << 24;
/// Most taps of one layer for one image.
const MAX_TAPS: usize = 1 << 24;
/// Most rings, and most scales, of the pose estimator.
const MAX_RINGS: usize = 512;
/// Most poses per position.
const MAX_POSES: usize = 16;
/// Largest reference scale and radius, in pixels.
const MAX_LENGTH: f64 = 4096.0;

/// One layer with weights.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LayerGeometry {
    /// Its name, as in the file of weights.
    pub name: String,
    /// Height, width and channels of its output.
    pub output: [usize; 3],
    /// Learned values, those of its batch norm included.
    pub parameters: usize,
    /// Multiply-adds for one image, all positions computed.
    pub multiply_adds: usize,
}

/// The layers of a network for images of one size, first to last.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// The grid of the features after the last layer.
    grid: Grid,
    /// Their channels.
    channels: usize,
    layers: Vec<LayerGeometry>,
}

/// A convolution with its batch norm.
pub(super) struct ConvShape {
    pub(super) kernel: usize,
    pub(super) channels: usize,
    pub(super) stride: usize,
    /// Whether the kernel depends on relative poses: three times the weights.
    pub(super) relative_pose: bool,
}

impl Geometry {
    /// Images of `channels` channels on `grid`, no layer yet.
    pub(super) fn new(grid: Grid, channels: usize) -> Self {
        Self { grid, channels, layers: Vec::new() }
    }

    /// The layers with weights.
    pub fn layers(&self) -> &[LayerGeometry] {
        &self.layers
    }

    /// Learned values of all layers.
    pub fn parameters(&self) -> usize {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.parameters))
    }

    /// Multiply-adds for one image, all positions computed.
    pub fn multiply_adds(&self) -> usize {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.multiply_adds))
    }

    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// The same features, no layer yet: for what runs beside.
    pub(super) fn branch(&self) -> Self {
        Self { layers: Vec::new(), ..*self }
    }

    /// Adds a convolution: the features are then its output.
    pub(super) fn conv(&mut self, name: String, shape: ConvShape) -> Result<()> {
        let ConvShape { kernel, channels, stride, relative_pose } = shape;
        within("taps along a kernel's side", kernel, 1, MAX_KERNEL)?;
        within("channels", channels, 1, MAX_PARAMETERS)?;
        within("stride", stride, 1, MAX_STRIDE)?;
        let grid = self.grid.cell_centred(stride)?;
        within("pixels between two positions", grid.step as usize, 1, MAX_STRIDE)?;
        let positions = grid.height.saturating_mul(grid.width);
        let taps = kernel * kernel;
        let inputs = taps * if relative_pose { 3 } else { 1 };
        let weights = inputs.saturating_mul(self.channels).saturating_mul(channels);
        within("taps of a layer", positions.saturating_mul(taps), 1, MAX_TAPS)?;
        let output = [grid.height, grid.width, channels];
        let parameters = weights.saturating_add(2 * channels);
        self.push(name, output, parameters, positions.saturating_mul(weights))?;
        (self.grid, self.channels) = (grid, channels);
        Ok(())
    }

    /// Adds the layers of a patch of `side` taps around every `stride`-th pixel, traced by `inside`
    /// on one patch.
    pub(super) fn patches(
        &mut self,
        side: usize,
        stride: usize,
        inside: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        within("taps along a patch's side", side, 1, MAX_KERNEL)?;
        within("stride", stride, 1, MAX_STRIDE)?;
        let grid = self.grid.cell_centred(stride)?;
        let positions = grid.height.saturating_mul(grid.width);
        let read = positions.saturating_mul(side * side * self.channels);
        check_features(read)?;
        let mut patch = Self::new(Grid::pixels(side, side), self.channels);
        inside(&mut patch)?;
        for LayerGeometry { name, output: [h, w, c], parameters, multiply_adds } in patch.layers {
            let output = [grid.height, grid.width, h * w * c];
            self.push(name, output, parameters, positions.saturating_mul(multiply_adds))?;
        }
        (self.grid, self.channels) = (grid, patch.channels);
        Ok(())
    }

    /// Adds a layer by its figures: the features stay what they are.
    pub(super) fn push(
        &mut self,
        name: String,
        output: [usize; 3],
        parameters: usize,
        multiply_adds: usize,
    ) -> Result<()> {
        let values = output.iter().fold(1usize, |product, size| product.saturating_mul(*size));
        check_features(values)?;
        self.layers.push(LayerGeometry { name, output, parameters, multiply_adds });
        within("parameters", self.parameters(), 0, MAX_PARAMETERS)
    }

    /// Adds the layers of `other`, under the name `prefix`.
    pub(super) fn append(&mut self, prefix: &str, other: Self) -> Result<()> {
        for LayerGeometry { name, output, parameters, multiply_adds } in other.layers {
            self.push(format!("{prefix}{name}"), output, parameters, multiply_adds)?;
        }
        Ok(())
    }
}

/// Returns an error that names the setting if `value` is not in `low..=high`.
pub(super) fn within(name: &str, value: usize, low: usize, high: usize) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::shape(OPERATION, format!("{low} to {high} {name}"), value.to_string()))
}

/// Returns an error if a layer has more values of an image than are meant.
pub(super) fn check_features(values: usize) -> Result<()> {
    within("values of a layer", values, 1, MAX_FEATURES)
}

/// Returns an error that names the setting if `value` is not a sensible length in pixels.
pub(super) fn check_length(name: &str, value: f64) -> Result<()> {
    if value > 0.0 && value <= MAX_LENGTH {
        return Ok(());
    }
    Err(Error::shape(OPERATION, format!("{name} above 0, at most {MAX_LENGTH}"), value.to_string()))
}

/// Returns an error that names the setting if a pose estimator is too large to be meant.
pub(super) fn check_pose(pose: &PoseEstimatorConfig) -> Result<()> {
    within("rings", pose.rings, 1, MAX_RINGS)?;
    within("scales", pose.scales, 1, MAX_RINGS)?;
    within("poses", pose.poses, 1, MAX_POSES)?;
    check_length("outer", pose.outer)
}

/// The number of learned values of a module. Running averages are not learned.
pub fn parameter_count<M: Module>(module: &M) -> usize {
    let mut count = Count::default();
    module.visit(&mut count);
    count.learned
}

#[derive(Default)]
struct Count {
    path: Vec<String>,
    learned: usize,
}

impl ModuleVisitor for Count {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.path.last().is_some_and(|name| name.starts_with("running_")) {
            self.learned += param.lazy_shape().num_elements();
        }
    }
}
