//! How far feature maps are from moving with the image.
//!
//! For images x, transforms T about their centre and positions p of a layer's grid,
//! ```text
//! error = sum |F(T x)(T p) - F(x)(p)|^2 / sum |F(x)(p)|^2
//! ```
//! as the paper defines it: 0 for an equivariant map, about 1 for features that have nothing to do
//! with each other. Its root is the relative size of what changes.
//! Neither side is interpolated: a transform that does not map the grid onto itself is followed,
//! for each position drawn, by the shift of at most half a grid step that puts `T p` on the grid.
//! All positions of the region count, also those where the features are zero.

use sren_math::{Grid, Similarity};

use super::layers::NamedFeatures;
use super::placement::{Placement, Region};
use crate::error::{Error, Result};
use crate::layers::FeatureMap;

const OPERATION: &str = "equivariance::measure";

/// Where features are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// The pixels of the images.
    pub image: Grid,
    /// Only positions within this distance of the images' centre are compared, in pixels. A disc
    /// stays a disc when rotated; choose it so that it, and all that features in it depend on, stay
    /// in frame.
    pub radius: f64,
    /// Positions drawn for each transform that does not map the grid onto itself: so many forward
    /// passes.
    pub positions: usize,
}

impl Protocol {
    /// Images of `height x width` pixels, compared within `radius` of their centre.
    pub fn new(height: usize, width: usize, radius: f64) -> Self {
        Self { image: Grid::pixels(height, width), radius, positions: 4 }
    }
}

/// One layer's error.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerError {
    /// The layer.
    pub name: String,
    /// The error over all transforms.
    pub error: f64,
    /// The same, relative to how much the features vary: the mean of each channel is subtracted
    /// from `F(x)` in the denominator. Greater than `error`; features without any relation have
    /// 2 whatever their mean.
    pub centred: f64,
    /// The error of each transform, in their order.
    pub by_transform: Vec<f64>,
    /// Number of positions compared, over all images and transforms.
    pub compared: usize,
}

/// Measures every layer of a model over `transforms`.
///
/// ```
/// use burn::tensor::Device;
/// use sren::equivariance::{Protocol, measure, warped};
/// use sren::{FeatureMap, Image, Similarity};
///
/// let image = [Image::from_fn(32, 32, |x, y| (0.3 * x).sin() * (0.2 * y).cos())?];
/// let rotation = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2])?;
/// let errors = measure(&Protocol::new(32, 32, 12.0), &[rotation], |transform| {
///     let images = warped(&image, transform, &Device::flex())?;
///     Ok(vec![("square".to_string(), FeatureMap::from_images(images.square()))])
/// })?;
/// assert!(errors[0].error < 1e-10);
/// # Ok::<(), sren::Error>(())
/// ```
/// `features` gives the feature maps of the
/// same images under any transform about their centre; [`warped`](super::warped) makes such images
/// from pixels.
pub fn measure(
    protocol: &Protocol,
    transforms: &[Similarity],
    features: impl Fn(&Similarity) -> Result<Vec<NamedFeatures>>,
) -> Result<Vec<LayerError>> {
    let before = Maps::read(features(&Similarity::IDENTITY)?)?;
    let mut sums: Vec<Vec<Sums>> = vec![Vec::new(); before.layers.len()];
    for (index, transform) in transforms.iter().enumerate() {
        // Layers on the same grid share their placements, and so their forward passes.
        for (grid, layers) in before.grids() {
            let region = Region { image: &protocol.image, grid: &grid, radius: protocol.radius };
            let placements = region.placements(transform, protocol.positions, index)?;
            let compared: usize = placements.iter().map(|p| p.pairs.len()).sum();
            if compared == 0 {
                let expected = "positions that stay on the grid";
                let got = format!("none within {} pixels under {transform:?}", protocol.radius);
                return Err(Error::shape(OPERATION, expected, got));
            }
            layers.iter().for_each(|layer| sums[*layer].push(before.layers[*layer].sums()));
            for Placement { transform, pairs } in placements {
                let after = Maps::read(features(&transform)?)?;
                for layer in &layers {
                    let (from, to) =
                        (&before.layers[*layer], after.same(*layer, &before.layers[*layer])?);
                    sums[*layer][index].compare(from, to, &pairs);
                }
            }
        }
    }
    Ok(before.layers.iter().zip(sums).map(|(layer, sums)| summary(layer, &sums)).collect())
}

fn summary(layer: &Layer, by_transform: &[Sums]) -> LayerError {
    let mut all = layer.sums();
    by_transform.iter().for_each(|sums| all.add(sums));
    let mean_energy: f64 =
        all.channels.iter().map(|sum| sum * sum / all.compared.max(1) as f64).sum();
    LayerError {
        name: layer.name.clone(),
        error: relative(all.change, all.energy),
        centred: relative(all.change, all.energy - mean_energy),
        by_transform: by_transform.iter().map(|s| relative(s.change, s.energy)).collect(),
        compared: all.compared,
    }
}

fn relative(change: f64, energy: f64) -> f64 {
    if change == 0.0 { 0.0 } else { change / energy.max(f64::MIN_POSITIVE) }
}

/// Sums of squares over compared positions.
#[derive(Debug, Clone, Default)]
struct Sums {
    change: f64,
    energy: f64,
    channels: Vec<f64>,
    compared: usize,
}

impl Sums {
    fn compare(&mut self, before: &Layer, after: &Layer, pairs: &[[usize; 2]]) {
        let [n, positions, c] = before.shape();
        for (image, [from, to]) in (0..n).flat_map(|i| pairs.iter().map(move |pair| (i, pair))) {
            let at = |values: &[f32], position: usize, channel: usize| {
                f64::from(values[(image * positions + position) * c + channel])
            };
            for channel in 0..c {
                let (old, new) =
                    (at(&before.values, *from, channel), at(&after.values, *to, channel));
                self.change += (new - old).powi(2);
                self.energy += old * old;
                self.channels[channel] += old;
            }
            self.compared += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.change += other.change;
        self.energy += other.energy;
        self.channels.iter_mut().zip(&other.channels).for_each(|(sum, more)| *sum += more);
        self.compared += other.compared;
    }
}

/// A feature map, read.
struct Layer {
    name: String,
    grid: Grid,
    images: usize,
    channels: usize,
    values: Vec<f32>,
}

impl Layer {
    /// Images, positions, channels.
    fn shape(&self) -> [usize; 3] {
        [self.images, self.grid.len(), self.channels]
    }

    fn sums(&self) -> Sums {
        Sums { channels: vec![0.0; self.channels], ..Sums::default() }
    }
}

struct Maps {
    layers: Vec<Layer>,
}

impl Maps {
    fn read(maps: Vec<NamedFeatures>) -> Result<Self> {
        let read = |(name, FeatureMap { values, grid }): NamedFeatures| {
            let [images, h, w, channels] = values.dims();
            if [h, w] != [grid.height, grid.width] {
                let expected = format!("{name} of {} x {}", grid.height, grid.width);
                return Err(Error::shape(OPERATION, expected, format!("{h} x {w}")));
            }
            let values = values
                .into_data()
                .try_into_vec::<f32>()
                .map_err(|e| Error::shape(OPERATION, format!("{name} of f32"), format!("{e:?}")))?;
            Ok(Layer { name, grid, images, channels, values })
        };
        let layers: Vec<Layer> = maps.into_iter().map(read).collect::<Result<_>>()?;
        if layers.is_empty() {
            return Err(Error::shape(OPERATION, "at least 1 feature map", "none"));
        }
        Ok(Self { layers })
    }

    /// The grids, and the layers on each.
    fn grids(&self) -> Vec<(Grid, Vec<usize>)> {
        let mut grids: Vec<(Grid, Vec<usize>)> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            match grids.iter_mut().find(|(grid, _)| *grid == layer.grid) {
                Some((_, layers)) => layers.push(index),
                None => grids.push((layer.grid, vec![index])),
            }
        }
        grids
    }

    /// The layer of that place, if it is what it was.
    fn same(&self, index: usize, before: &Layer) -> Result<&Layer> {
        let found = self
            .layers
            .get(index)
            .filter(|layer| layer.grid == before.grid && layer.shape() == before.shape());
        found.ok_or_else(|| {
            let expected = format!("{} of {:?} under every transform", before.name, before.shape());
            let got = self.layers.get(index).map(Layer::shape);
            Error::shape(OPERATION, expected, format!("{got:?}"))
        })
    }
}
