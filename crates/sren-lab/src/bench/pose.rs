//! The pose estimator: images per second, its share of a network, and how its cost grows.

use burn::tensor::{Device, Tensor, TensorData};
use serde::Serialize;
use sren::models::Architecture;
use sren::pose::Images;
use sren::{Equivariance, Frames, Grid, PoseEstimatorConfig, Result};

use super::layer::{BATCH, random};
use super::timing::minimum_interleaved;
use crate::threads::with_threads;

/// Image sizes, each twice the side of the previous one.
const SIZES: [usize; 3] = [56, 112, 224];
/// Poses are estimated at every second pixel.
const STRIDE: usize = 2;

/// The estimator at one image size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoseRow {
    /// Height and width of the images.
    pub size: usize,
    /// Number of threads.
    pub threads: usize,
    /// Images per second.
    pub images_per_second: f64,
    /// Time per pixel, over that of the smallest size: 1 where cost grows linearly with pixels.
    pub growth: f64,
    /// Time over that of a plain ResNet-18 forward pass on the same images, at the smallest size.
    pub share_of_resnet18: Option<f64>,
}

/// Measures the estimator.
pub fn pose(repetitions: usize, threads: &[usize]) -> Result<Vec<PoseRow>> {
    let mut rows = Vec::new();
    for &threads in threads {
        let of_threads = with_threads(threads, || rows_of(repetitions, threads))?;
        rows.extend(of_threads?);
    }
    Ok(rows)
}

fn rows_of(repetitions: usize, threads: usize) -> Result<Vec<PoseRow>> {
    let estimator = PoseEstimatorConfig::new().init()?;
    let mut first_pixel = None;
    let mut rows = Vec::new();
    for size in SIZES {
        let pixels: Vec<f32> = random(size as u64, BATCH * size * size).map(f32::abs).collect();
        let images = Images::new(&pixels, BATCH, size, size, 1)?;
        let image = Grid::pixels(size, size);
        let grid = image.cell_centred(STRIDE)?;
        let estimate = || drop(estimator.field(&images, &grid));
        estimator.field(&images, &grid)?;

        let (time, share) = if size == SIZES[0] {
            let device = Device::flex();
            let plain = Architecture::Resnet18.config_for(Equivariance::None, 1, 10);
            let network = plain.init(&device)?;
            let frames = Frames::plain(BATCH);
            let data = TensorData::new(pixels.clone(), [BATCH, size, size, 1]);
            let batch = Tensor::<4>::from_data(data, &device);
            network.forward_in(batch.clone(), &frames)?;
            let forward = || drop(network.forward_in(batch.clone(), &frames));
            let times = minimum_interleaved(repetitions, &[&estimate, &forward]);
            (times[0], Some(times[0] / times[1]))
        } else {
            (minimum_interleaved(repetitions, &[&estimate])[0], None)
        };
        let per_pixel = time / (size * size) as f64;
        rows.push(PoseRow {
            size,
            threads,
            images_per_second: 1e3 * BATCH as f64 / time,
            growth: per_pixel / *first_pixel.get_or_insert(per_pixel),
            share_of_resnet18: share,
        });
    }
    Ok(rows)
}
