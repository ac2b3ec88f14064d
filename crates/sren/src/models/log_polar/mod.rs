//! The log-polar branch: sees the whole object at once. Not in the paper.
//!
//! Local frames lose how the parts of an object lie to each other. In log-polar coordinates about
//! the object's centre, in units of its extent, a rotation of the image is a shift along the angle.
//! A plain CNN that is circular in angle moves with it, and so do the moments of its output f:
//!
//! ```text
//! z_k(radius) = mean over angles of f(angle, radius) e^(i k angle)
//! ```
//! (Row j of f lies at j steps of its circle, give or take half a cell of the strides: a constant
//! phase of each order, which the weights take up.) As in the
//! [orientation head](super::OrientationHead), two layers give each class a score for each
//! orientation, `l(orientation, class)`, which is added to that of the head.

mod sampling;

use std::f64::consts::TAU;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, Linear, LinearConfig};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use sren_math::Grid;

use self::sampling::{LogPolarGrid, MIN_EXTENT};
use super::conv_layer::{ConvLayer, ConvLayerConfig};
use super::dropout;
use super::geometry::{ConvShape, Geometry, check_features, check_length, within};
use super::heads::{HarmonicLayers, HarmonicSizes, Harmonics};
use crate::error::{Error, Result};
use crate::layers::{Mask, TapTable};
use crate::pose::Equivariance;

const OPERATION: &str = "LogPolarConfig";
/// Bounds of the radii, in extents.
const MIN_RADIUS: f64 = 1e-3;
const MAX_RADIUS: f64 = 1e3;

/// Configuration of a [`LogPolar`] branch.
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct LogPolarConfig {
    /// Samples along the angle, a multiple of the orientations times all strides.
    pub angles: usize,
    /// Samples along the radius.
    pub radii: usize,
    /// Least and largest radius, in units of the object's extent: the root mean square distance of
    /// what differs from the image's border from its centre.
    pub range: [f64; 2],
    /// The object's extent, in pixels, for a network that is not equivariant to scale.
    pub extent: f64,
    /// Layers, first to last, circular in angle.
    pub layers: Vec<ConvLayerConfig>,
    /// Moments along the angle.
    pub moments: usize,
    /// Channels of the hidden layer.
    pub hidden: usize,
    /// Dropout of the hidden layer, 0 to below 1.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Standard deviation of centre and ln extent in training, in extents: a part of the object may
    /// be missing.
    #[config(default = 0.0)]
    pub jitter: f64,
}

/// Scores classes and orientations of the image in log-polar coordinates. Made by
/// [`LogPolarConfig`].
#[derive(Module, Debug)]
pub struct LogPolar {
    /// The layers that are circular in angle.
    pub backbone: Vec<ConvLayer>,
    /// From the mean over angles to the hidden layer.
    pub pooled: Linear,
    /// From the rotated moments to the hidden layer.
    pub moments: Linear,
    /// Before the last layer.
    pub dropout: Option<Dropout>,
    /// From the hidden layer to classes.
    pub linear: Linear,
    #[module(skip)]
    pub(crate) grid: LogPolarGrid,
    moment_count: usize,
    pub(crate) orientations: usize,
    jitter: f64,
}

impl LogPolarConfig {
    /// A new branch for images of `image_channels` channels.
    pub(super) fn init(
        &self,
        [image_channels, orientations, classes]: [usize; 3],
        device: &Device,
    ) -> Result<LogPolar> {
        self.check(orientations)?;
        let mut channels = image_channels;
        let mut backbone = Vec::new();
        for layer in &self.layers {
            backbone.push(layer.init(channels, device)?);
            channels = layer.channels;
        }
        let [_, radii] = self.output();
        let width = radii * channels;
        let moments = LinearConfig::new(2 * self.moments * width, self.hidden).with_bias(false);
        let [inner, outer] = self.range;
        Ok(LogPolar {
            backbone,
            pooled: LinearConfig::new(width, self.hidden).init(device),
            moments: moments.init(device),
            dropout: dropout(self.dropout, OPERATION)?,
            linear: LinearConfig::new(self.hidden, classes).init(device),
            grid: LogPolarGrid {
                angles: self.angles,
                radii: self.radii,
                inner,
                outer,
                extent: self.extent,
            },
            moment_count: self.moments,
            orientations,
            jitter: self.jitter,
        })
    }

    /// Angles and radii after the last layer.
    fn output(&self) -> [usize; 2] {
        self.layers.iter().fold([self.angles, self.radii], |[angles, radii], layer| {
            [angles / layer.stride.max(1), radii.div_ceil(layer.stride.max(1))]
        })
    }

    fn check(&self, orientations: usize) -> Result<()> {
        within("angles", self.angles, 4, 1024)?;
        within("radii", self.radii, 2, 1024)?;
        within("log-polar layers", self.layers.len(), 1, 100)?;
        within("hidden channels", self.hidden, 1, 1 << 16)?;
        let mut angles = self.angles;
        for ConvLayerConfig { kernel, stride, .. } in &self.layers {
            let cells = stride.saturating_mul(orientations);
            if cells == 0 || !angles.is_multiple_of(cells) {
                let expected =
                    format!("angles a multiple of {orientations} orientations and all strides");
                return Err(Error::shape(OPERATION, expected, self.angles.to_string()));
            }
            within("taps along a circle's kernel", *kernel, 1, 2 * angles - 1)?;
            angles /= stride;
        }
        within("log-polar moments", self.moments, 1, angles / 2)?;
        let [inner, outer] = self.range;
        if !(MIN_RADIUS <= inner && inner < outer && outer <= MAX_RADIUS) {
            let expected = format!("ascending radii of {MIN_RADIUS} to {MAX_RADIUS}");
            return Err(Error::shape(OPERATION, expected, format!("{inner} to {outer}")));
        }
        check_length("extent", self.extent)?;
        if !(0.0..1.0).contains(&self.jitter) {
            return Err(Error::shape(OPERATION, "a jitter in 0..1", self.jitter.to_string()));
        }
        dropout(self.dropout, OPERATION)?;
        Ok(())
    }

    /// Adds its layers to `geometry`.
    pub(super) fn trace(
        &self,
        [orientations, classes]: [usize; 2],
        group: Equivariance,
        geometry: &mut Geometry,
        image_channels: usize,
    ) -> Result<()> {
        self.check(orientations)?;
        check_features((self.angles * self.radii).saturating_mul(image_channels))?;
        let mut own = Geometry::new(Grid::pixels(self.angles, self.radii), image_channels);
        for (index, layer) in self.layers.iter().enumerate() {
            let ConvLayerConfig { channels, kernel, stride } = *layer;
            let shape = ConvShape { kernel, channels, stride, relative_pose: false };
            own.conv(format!("backbone.{index}.conv"), shape)?;
        }
        let ([_, radii], channels) = (self.output(), own.channels());
        let width = radii.saturating_mul(channels);
        let sizes = HarmonicSizes {
            pooled: width,
            channels: width,
            moments: self.moments,
            hidden: self.hidden,
            classes,
            orientations,
        };
        sizes.trace("", group, &mut own)?;
        geometry.append("log_polar.", own)
    }
}

impl LogPolar {
    /// Least extent of an object, in pixels.
    pub(crate) const MIN_EXTENT: f32 = MIN_EXTENT;

    /// The branch with layers that do not learn below the hidden one.
    pub(super) fn with_frozen_backbone(self) -> Self {
        Self { backbone: self.backbone.no_grad(), ..self }
    }

    /// Images `[n, h, w, c]` -> scores `[n, orientations, classes]`, one row in a group without
    /// rotation.
    pub fn forward(&self, images: &Tensor<4>, group: Equivariance) -> Result<Tensor<3>> {
        self.scores(images, group, None)
    }

    /// [`forward`](Self::forward) in training: centre and extent jitter.
    pub(super) fn forward_training(
        &self,
        images: &Tensor<4>,
        group: Equivariance,
    ) -> Result<Tensor<3>> {
        if self.jitter == 0.0 {
            return self.forward(images, group);
        }
        let ([n, ..], device) = (images.dims(), images.device());
        let normal = Distribution::Normal(0.0, self.jitter);
        let jitter = Tensor::<1>::random([3 * n], normal, &device).into_data();
        let jitter: Vec<f32> = jitter.iter::<f32>().collect();
        self.scores(images, group, Some(&jitter))
    }

    /// The orders of the moments.
    pub(crate) fn orders(&self) -> Vec<i32> {
        (1..=self.moment_count as i32).collect()
    }

    /// What gives the mean over `angles` and the real and imaginary parts of moments of `orders`:
    /// `[1 + 2 moments, angles]`.
    pub(crate) fn fourier_basis(angles: usize, orders: &[i32]) -> Vec<f32> {
        let row = |wave: &dyn Fn(f64) -> f64| {
            let at = |step: usize| wave(TAU * step as f64 / angles as f64) / angles as f64;
            (0..angles).map(|step| at(step) as f32).collect::<Vec<f32>>()
        };
        let mut basis = row(&|_| 1.0);
        for order in orders {
            basis.extend(row(&|angle| (f64::from(*order) * angle).cos()));
            basis.extend(row(&|angle| (f64::from(*order) * angle).sin()));
        }
        basis
    }

    fn scores(
        &self,
        images: &Tensor<4>,
        group: Equivariance,
        jitter: Option<&[f32]>,
    ) -> Result<Tensor<3>> {
        // [n, h, w, c] -> [n, angles, radii, c]
        let sampled = self.grid.sample(images, group, jitter)?;
        let features = self.backbone.iter().try_fold(sampled, circular)?;
        let [n, angles, radii, c] = features.dims();
        let (width, orders) = (radii * c, self.orders());
        let rows = 1 + 2 * orders.len();
        let basis = TensorData::new(Self::fourier_basis(angles, &orders), [1, rows, angles]);
        let basis = Tensor::<3>::from_data(basis, &features.device()).expand([n, rows, angles]);
        // [n, rows, angles] x [n, angles, radii c]
        let all = basis.matmul(features.reshape([n, angles, width]));
        let mean = all.clone().narrow(1, 0, 1).reshape([n, width]);
        let moments = all.narrow(1, 1, rows - 1);
        let harmonics = Harmonics { orders: &orders, orientations: self.orientations };
        let layers = HarmonicLayers {
            pooled: &self.pooled,
            moments: &self.moments,
            dropout: self.dropout.as_ref(),
            linear: &self.linear,
        };
        Ok(layers.scores(harmonics, mean, moments, group))
    }
}

/// A layer on `[n, angles, radii, c]`, circular in angle.
fn circular(x: Tensor<4>, layer: &ConvLayer) -> Result<Tensor<4>> {
    let [n, angles, radii, _] = x.dims();
    let CircularGrids { margin, padded, output } = CircularGrids::new(layer, [angles, radii])?;
    let x = match margin {
        0 => x,
        _ => {
            let last = x.clone().narrow(1, angles - margin, margin);
            let first = x.clone().narrow(1, 0, margin);
            Tensor::cat(vec![last, x, first], 1)
        }
    };
    let taps = TapTable::plain(n, &padded, &output, layer.conv.kernel_size())?;
    layer.norm.forward(layer.conv.convolve(x, &taps)?, &Mask::default())
}

/// The grids of a layer that is circular in angle.
pub(crate) struct CircularGrids {
    /// Rows that are repeated on either side of the circle.
    pub(crate) margin: usize,
    /// The circle with these rows.
    pub(crate) padded: Grid,
    /// The output: cells of the circle alone.
    pub(crate) output: Grid,
}

impl CircularGrids {
    /// Those of `layer` on `[angles, radii]`.
    pub(crate) fn new(layer: &ConvLayer, [angles, radii]: [usize; 2]) -> Result<Self> {
        let margin = layer.conv.kernel_size() / 2;
        let output = layer.conv.output_grid(&Grid::pixels(angles, radii))?;
        let [x, y] = output.origin;
        Ok(Self {
            margin,
            padded: Grid::pixels(angles + 2 * margin, radii),
            output: Grid { origin: [x, y + margin as f64], ..output },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(group: Equivariance, image: Vec<f32>, size: usize) -> Vec<f32> {
        let device = Device::flex();
        device.seed(7);
        let layers = [[8, 5, 1], [8, 3, 2], [6, 1, 1]]
            .map(|[channels, kernel, stride]| ConvLayerConfig::new(channels, kernel, stride));
        let config = LogPolarConfig::new(48, 11, [0.12, 2.6], 7.0, layers.to_vec(), 8, 16);
        let branch = config.init([2, 24, 3], &device).unwrap();
        let images = Tensor::from_data(TensorData::new(image, [1, size, size, 2]), &device);
        branch.forward(&images, group).unwrap().into_data().iter::<f32>().collect()
    }

    /// The image of `size` x `size` x 2 that `quarters` right angles rotate, with a blank margin.
    fn image(size: usize, quarters: usize) -> Vec<f32> {
        let inside = size / 4..size - size / 4;
        let value = |x: usize, y: usize, c: usize| {
            if !inside.contains(&x) || !inside.contains(&y) {
                return 0.0;
            }
            ((x * 31 + y * 17 + c * 7) % 11) as f32 / 11.0
        };
        let mut image = Vec::new();
        for at in 0..size * size * 2 {
            let (mut x, mut y) = (at / 2 % size, at / 2 / size);
            for _ in 0..quarters {
                // Back by a right angle that takes x to y.
                (x, y) = (y, size - 1 - x);
            }
            image.push(value(x, y, at % 2));
        }
        image
    }

    #[test]
    fn right_angles_shift_the_orientations() {
        for group in [Equivariance::Rotation, Equivariance::Similarity] {
            let upright = branch(group, image(24, 0), 24);
            for quarters in 1..4 {
                let rotated = branch(group, image(24, quarters), 24);
                for (at, score) in upright.iter().enumerate() {
                    let moved = (at + upright.len() - 6 * 3 * quarters) % upright.len();
                    assert!((score - rotated[moved]).abs() < 2e-5, "{quarters} {at}");
                }
                assert!(upright.iter().zip(&rotated).any(|(a, b)| (a - b).abs() > 1e-3));
            }
        }
        let plain = branch(Equivariance::Scale, image(24, 0), 24);
        assert_eq!(plain.len(), 3);
    }
}
