//! The patch encoder: a backbone whose kernel is a network of its own. Not in the paper.
//!
//! ```text
//! out(x) = Phi( f(x + Lambda(x)/Lambda_0 R(Gamma(x)) t), t on the k x k grid )
//! ```
//! The similarity convolution with a small convolutional network Phi in place of the sum with
//! phi(t). All its layers see the patch around x in the one frame of x, so it is as equivariant as
//! the convolution, and no features are interpolated.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use sren_kernels::patches;
use sren_math::Grid;

use super::backbone::Backbone;
use super::conv_layer::{ConvLayer, ConvLayerConfig};
use super::geometry::{ConvShape, Geometry, check_length, within};
use crate::error::{Error, Result};
use crate::layers::{
    FeatureMap, Mask, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig, TapTable,
};
use crate::pose::{Frames, TapLayout};

/// Most layers.
const MAX_LAYERS: usize = 1000;

/// Configuration of a [`PatchEncoder`].
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct PatchEncoderConfig {
    /// Taps along one side of a patch, odd.
    pub side: usize,
    /// Distance of neighbouring positions, in pixels.
    pub stride: usize,
    /// The scale Lambda_0, in pixels, of a pose whose taps lie one pixel apart.
    pub reference_scale: f64,
    /// Layers on the patch, first to last.
    pub layers: Vec<ConvLayerConfig>,
    /// Channels of the output.
    pub channels: usize,
}

/// A plain convolutional network on the patch around each position, sampled in its frame. Made by
/// [`PatchEncoderConfig`].
#[derive(Module, Debug)]
pub struct PatchEncoder {
    /// The layers on the patch.
    pub layers: Vec<ConvLayer>,
    /// From what the layers leave of the patch to one vector.
    pub projection: SimConv2d,
    /// Its batch norm, with ReLU, over the active positions.
    pub norm: MaskedBatchNorm,
    pub(crate) side: usize,
    pub(crate) stride: usize,
    pub(crate) reference_scale: f64,
}

impl PatchEncoderConfig {
    /// A new encoder for images of `image_channels` channels.
    pub fn init(&self, image_channels: usize, device: &Device) -> Result<PatchEncoder> {
        self.check()?;
        let (mut channels, mut side) = (image_channels, self.side);
        let mut layers = Vec::new();
        for layer in &self.layers {
            layers.push(layer.init(channels, device)?);
            (channels, side) = (layer.channels, side.div_ceil(layer.stride));
        }
        // One position per patch, its centre.
        let projection = SimConv2dConfig::new([channels, self.channels], side)
            .with_stride(side)
            .with_bias(false);
        let norm = MaskedBatchNormConfig::new(self.channels).with_relu(true);
        Ok(PatchEncoder {
            layers,
            projection: projection.init(device)?,
            norm: norm.init(device)?,
            side: self.side,
            stride: self.stride,
            reference_scale: self.reference_scale,
        })
    }

    fn check(&self) -> Result<()> {
        const OPERATION: &str = "PatchEncoderConfig";
        if self.side.is_multiple_of(2) {
            return Err(Error::shape(OPERATION, "an odd side", self.side.to_string()));
        }
        if self.stride == 0 || self.layers.iter().any(|layer| layer.stride == 0) {
            return Err(Error::shape(OPERATION, "a stride of at least 1", "0"));
        }
        check_length("reference_scale", self.reference_scale)
    }

    /// Adds its layers to `geometry`.
    pub(super) fn trace(&self, geometry: &mut Geometry) -> Result<()> {
        self.check()?;
        within("layers of a patch", self.layers.len(), 1, MAX_LAYERS)?;
        let shape = |channels: usize, kernel: usize, stride: usize| ConvShape {
            kernel,
            channels,
            stride,
            relative_pose: false,
        };
        geometry.patches(self.side, self.stride, |patch| {
            let mut side = self.side;
            for (index, layer) in self.layers.iter().enumerate() {
                let conv = shape(layer.channels, layer.kernel, layer.stride);
                patch.conv(format!("backbone.layers.{index}.conv"), conv)?;
                side = side.div_ceil(layer.stride);
            }
            patch.conv("backbone.projection".into(), shape(self.channels, side, side))
        })
    }
}

impl PatchEncoder {
    /// The taps that sample the patches of `images`.
    fn taps(&self, images: &Tensor<4>, frames: &Frames) -> Result<TapTable> {
        let [_, h, w, _] = images.dims();
        let pixels = Grid::pixels(h, w);
        let output = pixels.cell_centred(self.stride)?;
        let reference_scale = self.reference_scale;
        frames.taps(&pixels, &output, TapLayout { reference_scale, ..TapLayout::new(self.side) })
    }

    /// The output of the layers, from their last on the patches.
    fn project(&self, patches: Patches, taps: &TapTable, frames: &Frames) -> Result<FeatureMap> {
        let grid = *taps.output_grid();
        // [patches, side, side, c] -> [patches, 1, 1, channels] -> [n, h, w, channels]
        let x = patches.convolve(&self.projection)?.scatter(taps);
        Ok(FeatureMap { values: self.norm.forward(x, &frames.mask(&grid)?)?, grid })
    }
}

impl Backbone for PatchEncoder {
    fn grids(&self, image: &Grid) -> Result<Vec<Grid>> {
        Ok(vec![image.cell_centred(self.stride)?])
    }

    fn forward(&self, images: Tensor<4>, frames: &Frames) -> Result<FeatureMap> {
        let taps = self.taps(&images, frames)?;
        // [n, h, w, c] -> [patches, k, k, c] -> [patches, side, side, c]
        let patches = Patches::gather(&images, &taps)?;
        let patches = self.layers.iter().try_fold(patches, Patches::apply)?;
        self.project(patches, &taps, frames)
    }

    /// The maps of the layers on the patch are `[n, h, w, side * side * c]`, each position with the
    /// gate that its output has.
    fn feature_maps(
        &self,
        images: Tensor<4>,
        frames: &Frames,
    ) -> Result<Vec<(String, FeatureMap)>> {
        let taps = self.taps(&images, frames)?;
        let grid = *taps.output_grid();
        let gate = frames.gate(&grid, &images.device())?;
        let mut patches = Patches::gather(&images, &taps)?;
        let mut maps = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            patches = patches.apply(layer)?;
            let values = patches.clone().scatter(&taps) * gate.clone();
            maps.push((format!("layers.{index}"), FeatureMap { values, grid }));
        }
        maps.push(("projection".into(), self.project(patches, &taps, frames)?));
        Ok(maps)
    }

    /// Patches are computed only where there is a pose.
    fn needs_poses(&self) -> bool {
        true
    }
}

/// The patches of a batch: `[patches, side, side, c]` on `grid`.
#[derive(Debug, Clone)]
struct Patches {
    values: Tensor<4>,
    grid: Grid,
}

impl Patches {
    /// The patches of all active positions of images `[n, h, w, c]`, each in its position's frame.
    /// No gradient flows through them to the images.
    fn gather(images: &Tensor<4>, taps: &TapTable) -> Result<Self> {
        let ([.., c], k) = (images.dims(), taps.kernel_size());
        let data = images
            .to_data()
            .try_into_vec::<f32>()
            .map_err(|e| Error::shape("PatchEncoder", "images of f32", format!("{e:?}")))?;
        let mut values = patches(taps, &data, c)?;
        // Tensors are not empty: without any position, a blank patch that is not scattered.
        values.resize(values.len().max(k * k * c), 0.0);
        let shape = [values.len() / (k * k * c), k, k, c];
        let values = Tensor::from_data(TensorData::new(values, shape), &images.device());
        Ok(Self { values, grid: Grid::pixels(k, k) })
    }

    fn convolve(self, conv: &SimConv2d) -> Result<Self> {
        let grid = conv.output_grid(&self.grid)?;
        let taps = TapTable::plain(self.values.dims()[0], &self.grid, &grid, conv.kernel_size())?;
        Ok(Self { values: conv.convolve(self.values, &taps)?, grid })
    }

    fn apply(self, layer: &ConvLayer) -> Result<Self> {
        let Self { values, grid } = self.convolve(&layer.conv)?;
        Ok(Self { values: layer.norm.forward(values, &Mask::default())?, grid })
    }

    /// The patches at their positions on the grid of `taps`, zeros elsewhere:
    /// `[n, h, w, side * side * c]`.
    fn scatter(self, taps: &TapTable) -> Tensor<4> {
        let [m, h, w, c] = self.values.dims();
        let (grid, width) = (taps.output_grid(), h * w * c);
        let shape = [taps.batch(), grid.height, grid.width, width];
        let Some(active) = taps.active() else {
            return self.values.reshape(shape);
        };
        let device = self.values.device();
        if active.is_empty() {
            return Tensor::zeros(shape, &device);
        }
        let rows = active.iter().map(|position| *position as i32).collect::<Vec<_>>();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [m]), &device);
        let zeros = Tensor::<2>::zeros([taps.batch() * grid.len(), width], &device);
        let all =
            zeros.select_assign(0, rows, self.values.reshape([m, width]), IndexingUpdateOp::Add);
        all.reshape(shape)
    }
}
