//! A Burn model of one's own with similarity convolutions: trained upright, it predicts the same for
//! rotated images.
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};
use sren::models::{SimBlock, SimBlockConfig};
use sren::{Equivariance, FeatureMap, PoseEstimator, PoseEstimatorConfig, Result, pool};
use sren::{SimConv2d, SimConv2dConfig};

#[derive(Module, Debug)]
struct Net {
    stem: SimConv2d,
    block: SimBlock,
    head: Linear,
}

impl Net {
    /// `[n, 32, 32, 1]` -> `[n, 1]`
    fn forward(&self, images: Tensor<4>, poses: &PoseEstimator) -> Result<Tensor<2>> {
        let frames = poses.frames(&images, Equivariance::Similarity)?;
        let x = self.stem.forward(FeatureMap::from_images(images), &frames)?; // [n, 16, 16, 16]
        let x = self.block.forward(x, &frames)?; // [n, 16, 16, 32]
        Ok(self.head.forward(pool::gated_mean(&x, &frames)?))
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
        stem: SimConv2dConfig::new([1, 16], 7)
            .with_stride(2)
            .with_reference_scale(1.6)
            .init(&device)?,
        block: SimBlockConfig::new([16, 32]).init(&device)?,
        head: LinearConfig::new(32, 1).init(&device),
    };
    let mut adam = AdamConfig::new().init();
    for step in 1..=30 {
        let loss = (net.forward(images.clone(), &poses)? - targets.clone()).square().mean();
        println!("step {step:2}: loss {:.4}", loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = adam.step(0.01, net, gradients);
    }
    let rotated = images.clone().swap_dims(1, 2).flip([2]);
    let predict = |x: Tensor<4>| net.valid().forward(x.without_autodiff().narrow(0, 0, 4), &poses);
    println!("upright: {}", predict(images)?.to_data());
    println!("rotated: {}", predict(rotated)?.to_data());
    Ok(())
}
