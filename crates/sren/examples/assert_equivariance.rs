//! Asserts, as a test would, that a model's features rotate and grow with the image.
use burn::tensor::{Device, Tensor, TensorData};
use sren::equivariance::{LayerError, Protocol, measure};
use sren::{Equivariance, FeatureMap, PoseEstimatorConfig, Result, SimConv2dConfig, Similarity};

const SIDE: usize = 96;

/// Two soft blobs, drawn where `transform` moves them: nothing is interpolated.
fn scene(transform: &Similarity, device: &Device) -> Tensor<4> {
    let centre = [0.5 * (SIDE as f64 - 1.0); 2];
    let back = transform.about(centre).inverse();
    let pixel = |i: usize| {
        let [x, y] = back.apply([(i % SIDE) as f64, (i / SIDE) as f64]);
        let blob = |cx: f64, cy: f64, sigma: f64| {
            (-((x - cx).powi(2) + (y - cy).powi(2)) / (2.0 * sigma * sigma)).exp()
        };
        (blob(42.0, 45.0, 7.0) + 0.6 * blob(55.0, 52.0, 5.0)) as f32
    };
    let pixels = (0..SIDE * SIDE).map(pixel).collect();
    Tensor::from_data(TensorData::new(pixels, [1, SIDE, SIDE, 1]), device)
}

fn main() -> Result<()> {
    let device = Device::flex();
    device.seed(1);
    let poses = PoseEstimatorConfig::new().with_min_scale(2.0).with_inner(0.9).init()?;
    let layer =
        SimConv2dConfig::new([1, 8], 5).with_stride(2).with_reference_scale(2.5).init(&device)?;

    let rotations = [20.0f64, 75.0, 140.0].map(|degrees| (1.0, degrees));
    let transforms: Vec<Similarity> = [(0.8, 0.0), (1.3, 0.0)]
        .iter()
        .chain(&rotations)
        .map(|(scale, degrees)| Similarity::new(*scale, degrees.to_radians(), [0.0; 2]))
        .collect::<Result<_, _>>()?;
    let error = |group: Equivariance| -> Result<LayerError> {
        let layers = measure(&Protocol::new(SIDE, SIDE, 20.0), &transforms, |transform| {
            let images = scene(transform, &device);
            let frames = poses.frames(&images, group)?;
            let features = layer.forward(FeatureMap::from_images(images), &frames)?;
            Ok(vec![("conv".to_string(), features)])
        })?;
        Ok(layers[0].clone())
    };
    let (ours, plain) = (error(Equivariance::Similarity)?, error(Equivariance::None)?);
    println!(
        "similarity convolution: {:.5}\nplain convolution:      {:.5}",
        ours.error, plain.error
    );
    assert!(ours.error < 0.0025 && plain.error > 16.0 * ours.error);
    Ok(())
}
