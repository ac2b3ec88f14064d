//! One's own Burn model with similarity convolutions: trained upright, it says the same when turned.
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData, activation::gelu};
use sren::{Equivariance, Grid, PoseEstimator, PoseEstimatorConfig, Result, pool};
use sren::{MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig};

#[derive(Module, Debug)]
struct Net {
    stem: SimConv2d,
    norm: MaskedBatchNorm,
    conv: SimConv2d,
    head: Linear,
}

impl Net {
    /// `[n, 32, 32, 1]` -> `[n, 1]`
    fn forward(&self, images: Tensor<4>, poses: &PoseEstimator) -> Result<Tensor<2>> {
        let image = Grid::pixels(32, 32);
        let grid = self.stem.output_grid(&image)?;
        let frames = poses.frames(&images, &[grid], Equivariance::Similarity)?;
        let gate = frames.gate(&grid, &images.device())?;
        let x = self.stem.forward(images, &self.stem.taps(&frames, &image)?)?;
        let x = self.norm.forward(x, &frames.mask(&grid)?)?; // [n, 16, 16, 16], gated
        let x = self.conv.forward(x, &self.conv.taps(&frames, &grid)?)?;
        Ok(self.head.forward(pool::gated_mean(gelu(x) * gate.clone(), gate)?))
    }
}

fn main() -> Result<()> {
    let (device, poses) = (Device::flex().autodiff(), PoseEstimatorConfig::new().init()?);
    // Upright images of 32x32: a bar (target 0) or an L (target 1), moved about.
    let pixel = |v: usize| {
        let (i, y, x) = (v / 1024, v / 32 % 32, v % 32);
        let (y, x) = (y.wrapping_sub(8 + i * 5 % 7), x.wrapping_sub(8 + i * 3 % 8));
        (y < 16 && (x < 5 || (i % 2 == 1 && y > 10 && x < 13))) as u8 as f32
    };
    let pixels = TensorData::new((0..16 * 1024).map(pixel).collect(), [16, 32, 32, 1]);
    let images = Tensor::from_data(pixels, &device);
    let targets = Tensor::from_data(TensorData::new([0f32, 1.].repeat(8), [16, 1]), &device);
    let mut net = Net {
        stem: SimConv2dConfig::new([1, 16], 7).with_stride(2).with_kappa(0.6).init(&device)?,
        norm: MaskedBatchNormConfig::new(16).with_relu(true).init(&device)?,
        conv: SimConv2dConfig::new([16, 32], 3).init(&device)?,
        head: LinearConfig::new(32, 1).init(&device),
    };
    let mut adam = AdamConfig::new().init();
    for step in 1..=30 {
        let loss = (net.forward(images.clone(), &poses)? - targets.clone()).square().mean();
        println!("step {step:2}: loss {:.4}", loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = adam.step(0.01, net, gradients);
    }
    let turned = images.clone().swap_dims(1, 2).flip([2]);
    let says = |x: Tensor<4>| net.valid().forward(x.without_autodiff().narrow(0, 0, 4), &poses);
    println!("upright: {}\nturned:  {}", says(images)?.to_data(), says(turned)?.to_data());
    Ok(())
}
