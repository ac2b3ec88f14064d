//! The images that equivariance is measured on, under any transform.
//!
//! Every image stands on a canvas that it does not leave: rotated by any angle up to scale 1.4,
//! upright up to scale 2. Digits stand on black, photographs, cut to a disc, on their mean colour. So nothing enters or leaves the frame, and what is compared, the
//! positions in a disc about the centre, stays in it with its surroundings.

use std::f64::consts::TAU;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use sren::equivariance::{Protocol, warped};
use sren::models::NetworkConfig;
use sren::{Image, Similarity};
use sren_data::{CANVAS, Letterbox, Mnist, Split, find_images, in_channels, masked, read_reduced};

use crate::error::{LabError, Result};

/// Side of a smooth image.
const SMOOTH_SIDE: usize = 96;
/// Blobs of a smooth image,
const BLOBS: usize = 6;
/// how far from the centre they may be, and how wide, in pixels.
const BLOB_DISTANCE: f64 = 10.0;
const BLOB_SIGMA: std::ops::Range<f64> = 3.0..6.0;

/// A soft blob.
#[derive(Debug, Clone, Copy)]
struct Blob {
    centre: [f64; 2],
    sigma: f64,
    height: f64,
}

#[derive(Debug, Clone)]
enum Content {
    /// Pixels, warped by cubic convolution, above a ground of one pixel each.
    Pixels { images: Vec<Image>, grounds: Vec<Image> },
    /// Sums of blobs, drawn at the transformed coordinates: no warp, no error by it.
    Blobs(Vec<Vec<Blob>>),
}

/// Images of one size.
#[derive(Debug, Clone)]
pub struct Scenes {
    name: String,
    content: Content,
    channels: usize,
    side: usize,
    radius: f64,
}

impl Scenes {
    /// `count` test digits, evenly spread over the set, on the paper's canvas of 56 x 56.
    pub fn mnist(count: usize) -> Result<Self> {
        let digits = Mnist::load(Split::Test)?;
        let images = (0..count.min(digits.len()))
            .filter_map(|i| digits.image(i * digits.len() / count))
            .map(|digit| digit.padded(CANVAS, CANVAS))
            .collect::<Result<Vec<_>, _>>()?;
        let grounds = vec![Image::zeros(1, 1, 1)?; images.len()];
        let content = Content::Pixels { images, grounds };
        Self { name: "mnist".into(), content, channels: 1, side: CANVAS, radius: 14.0 }.filled()
    }

    /// `count` images of the folder, their longer side brought to `side` pixels, as
    /// [`photographs`](Self::photographs).
    pub fn folder(folder: &Path, count: usize, side: usize) -> Result<Self> {
        let name = folder.display().to_string();
        let files = find_images(folder)?;
        if files.is_empty() {
            return Err(LabError::invalid(name, "images below it", "none"));
        }
        let count = count.min(files.len());
        let read = |i: usize| -> Result<Image> {
            let image = read_reduced(&files[i * files.len() / count], side)?.image;
            let channels = image.channels().min(3);
            Ok(Letterbox { side, channels, mean_colour: true }.apply(&image)?)
        };
        Self::photographs(name, (0..count).map(read).collect::<Result<_>>()?, side)
    }

    /// Photographs of `side` x `side` pixels, as in training: behind a circular mask with a soft edge,
    /// on their mean colour; on a canvas of twice their side.
    pub fn photographs(name: String, photographs: Vec<Image>, side: usize) -> Result<Self> {
        let (mut images, mut grounds) = (Vec::new(), Vec::new());
        for photograph in &photographs {
            let (seen, mean) = masked(photograph)?;
            images.push(seen.padded(2 * side, 2 * side)?);
            grounds.push(Image::new(1, 1, mean.len(), mean)?);
        }
        let content = Content::Pixels { images, grounds };
        let (side, radius) = (2 * side, 0.5 * side as f64);
        Self { name, content, channels: 1, side, radius }.filled()
    }

    /// `count` sums of random soft blobs on a canvas of 96 x 96, the same for the same seed.
    pub fn smooth(count: usize, seed: u64) -> Result<Self> {
        let blobs = |index: usize| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(index as u64);
            let mut blob = || {
                let distance = BLOB_DISTANCE * random.random_range(0.0f64..1.0).sqrt();
                let (sin, cos) = random.random_range(0.0..TAU).sin_cos();
                Blob {
                    centre: [distance * cos, distance * sin],
                    sigma: random.random_range(BLOB_SIGMA),
                    height: random.random_range(0.2..0.5),
                }
            };
            (0..BLOBS).map(|_| blob()).collect()
        };
        let content = Content::Blobs((0..count).map(blobs).collect());
        Self { name: "smooth".into(), content, channels: 1, side: SMOOTH_SIDE, radius: 16.0 }
            .filled()
    }

    fn filled(self) -> Result<Self> {
        if self.is_empty() {
            return Err(LabError::invalid(self.name, "at least 1 image", "0"));
        }
        Ok(self)
    }

    /// mnist, smooth, or the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Pixels { images, .. } => images.len(),
            Content::Blobs(images) => images.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Height and width.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Radius of the disc that is compared, in pixels.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Where features are compared, at `positions` positions a transform.
    pub fn protocol(&self, positions: usize) -> Protocol {
        Protocol { positions, ..Protocol::new(self.side, self.side, self.radius) }
    }

    /// The images in the channels that a network reads.
    pub fn read_by(&self, config: &NetworkConfig) -> Result<Self> {
        let channels = config.image_channels;
        let content = match &self.content {
            Content::Pixels { images, grounds } => {
                let read = |images: &[Image]| {
                    images
                        .iter()
                        .map(|image| in_channels(image, channels))
                        .collect::<Result<_, _>>()
                };
                Content::Pixels { images: read(images)?, grounds: read(grounds)? }
            }
            blobs => blobs.clone(),
        };
        Ok(Self { content, channels, ..self.clone() })
    }

    /// The first `count` of them.
    pub(super) fn first(&self, count: usize) -> Self {
        let mut fewer = self.clone();
        match &mut fewer.content {
            Content::Pixels { images, grounds } => {
                images.truncate(count);
                grounds.truncate(count);
            }
            Content::Blobs(images) => images.truncate(count),
        }
        fewer
    }

    /// The same images with `margin` more pixels on every side.
    pub(super) fn with_margin(&self, margin: usize) -> Result<Self> {
        let side = self.side + 2 * margin;
        let content = match &self.content {
            Content::Pixels { images, grounds } => {
                let images = images.iter().map(|image| image.padded(side, side));
                let images = images.collect::<Result<_, _>>()?;
                Content::Pixels { images, grounds: grounds.clone() }
            }
            blobs => blobs.clone(),
        };
        Ok(Self { side, content, ..self.clone() })
    }

    /// The images under a transform about their centre, `[n, side, side, channels]`.
    pub fn view(&self, transform: &Similarity, device: &Device) -> Result<Tensor<4>, sren::Error> {
        let images = match &self.content {
            Content::Pixels { images, grounds } => {
                // [n, side, side, channels] + [n, 1, 1, channels]
                let data = grounds.iter().flat_map(|ground| ground.data().to_vec()).collect();
                let data = TensorData::new(data, [grounds.len(), 1, 1, self.channels]);
                let grounds: Tensor<4> = Tensor::from_data(data, device);
                return Ok(warped(images, transform, device)? + grounds);
            }
            Content::Blobs(images) => images,
        };
        let middle = 0.5 * (self.side as f64 - 1.0);
        let back = transform.about([middle; 2]).inverse();
        let pixels = self.side * self.side;
        let pixel = |i: usize| {
            let (image, at) = (i / pixels, i % pixels);
            let [x, y] = back.apply([(at % self.side) as f64, (at / self.side) as f64]);
            let value = |blob: &Blob| {
                let [dx, dy] = [x - middle - blob.centre[0], y - middle - blob.centre[1]];
                blob.height * (-(dx * dx + dy * dy) / (2.0 * blob.sigma * blob.sigma)).exp()
            };
            images[image].iter().map(value).sum::<f64>() as f32
        };
        let data: Vec<f32> = (0..images.len() * pixels).into_par_iter().map(pixel).collect();
        let shape = [images.len(), self.side, self.side, 1];
        let grey: Tensor<4> = Tensor::from_data(TensorData::new(data, shape), device);
        Ok(grey.repeat_dim(3, self.channels))
    }
}
