//! A stem whose kernel is a network of its own.
//!
//! ```text
//! out(x) = Phi( f(x + kappa Lambda(x) R(Gamma(x)) t), t on the k x k grid )
//! ```
//! The similarity convolution with a small convolutional network Phi in the place of the sum with
//! phi(t): all its layers see the surroundings of x in the one frame of x, and it is as equivariant
//! as the convolution.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use sren_kernels::{TapTable, patches};
use sren_math::Grid;

use crate::error::{Error, Result};
use crate::{Mask, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig};

/// Configuration of a [`WindowLayer`].
#[derive(Config, Debug)]
pub struct WindowLayerConfig {
    /// Channels of its output.
    pub channels: usize,
    /// Taps along one side of its kernel, odd.
    pub kernel: usize,
    /// Its stride.
    pub stride: usize,
}

/// A layer inside of the window: plain convolution, batch norm, ReLU.
#[derive(Module, Debug)]
pub struct WindowLayer {
    /// The convolution.
    pub conv: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm: MaskedBatchNorm,
}

impl WindowLayerConfig {
    /// A new layer that reads `channels` channels.
    pub fn init(&self, channels: usize, device: &Device) -> Result<WindowLayer> {
        let conv = SimConv2dConfig::new([channels, self.channels], self.kernel)
            .with_stride(self.stride)
            .with_bias(false);
        let norm = MaskedBatchNormConfig::new(self.channels).with_relu(true);
        Ok(WindowLayer { conv: conv.init(device)?, norm: norm.init(device)? })
    }
}

/// The windows of a batch: `[windows, side, side, c]` on `grid`.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    pub(super) values: Tensor<4>,
    pub(super) grid: Grid,
}

impl Windows {
    /// The windows of all active positions of images `[n, h, w, c]`, each in its position's frame.
    /// No gradient flows through them to the images.
    pub(super) fn read(images: &Tensor<4>, taps: &TapTable) -> Result<Self> {
        let ([.., c], k) = (images.dims(), taps.kernel_size());
        let data = images
            .to_data()
            .try_into_vec::<f32>()
            .map_err(|e| Error::shape("stem window", "images of f32", format!("{e:?}")))?;
        let mut values = patches(taps, &data, c)?;
        // Tensors are not empty: without any position, a blank window that goes nowhere.
        values.resize(values.len().max(k * k * c), 0.0);
        let shape = [values.len() / (k * k * c), k, k, c];
        let values = Tensor::from_data(TensorData::new(values, shape), &images.device());
        Ok(Self { values, grid: Grid::pixels(k, k) })
    }

    /// The convolution of every window.
    pub(super) fn convolved(self, conv: &SimConv2d) -> Result<Self> {
        let grid = conv.output_grid(&self.grid)?;
        let taps = TapTable::plain(self.values.dims()[0], &self.grid, &grid, conv.kernel_size())?;
        Ok(Self { values: conv.forward(self.values, &taps)?, grid })
    }

    /// What `layer` makes of every window.
    pub(super) fn through(self, layer: &WindowLayer) -> Result<Self> {
        let Self { values, grid } = self.convolved(&layer.conv)?;
        let all = Mask { active: None, gate: None };
        Ok(Self { values: layer.norm.forward(values, &all)?, grid })
    }

    /// The windows where their positions are on the grid of `taps`, zeros elsewhere:
    /// `[n, h, w, side * side * c]`.
    pub(super) fn in_place(self, taps: &TapTable) -> Tensor<4> {
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
        let nothing = Tensor::<2>::zeros([taps.batch() * grid.len(), width], &device);
        let all =
            nothing.select_assign(0, rows, self.values.reshape([m, width]), IndexingUpdateOp::Add);
        all.reshape(shape)
    }
}
