//! The images that equivariance is measured on, under any transform.
//!
//! Every image stands on a black canvas that it does not leave: turned by any angle up to scale
//! 1.4, upright up to scale 2. So nothing enters or leaves the frame, and what is compared, the
//! positions in a disc about the centre, stays in it with its surroundings.

use std::f64::consts::TAU;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use sren::equivariance::{Protocol, warped};
use sren::{Image, Similarity, resize};
use sren_data::{CANVAS, Mnist, Split, find_images, read_image};

use crate::error::{LabError, Result};

/// Longer side that a photograph is brought to; its canvas is twice as large.
const PHOTOGRAPH_SIDE: usize = 96;
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
    /// Pixels, warped by cubic convolution.
    Pixels(Vec<Image>),
    /// Sums of blobs, drawn at the transformed coordinates: no warp, no error by it.
    Blobs(Vec<Vec<Blob>>),
}

/// Images of one size.
#[derive(Debug, Clone)]
pub struct Scenes {
    name: String,
    content: Content,
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
        let content = Content::Pixels(images);
        Self { name: "mnist".into(), content, side: CANVAS, radius: 14.0 }.filled()
    }

    /// `count` images of the folder, in grey, their longer side brought to 96 pixels, on a canvas
    /// of 192.
    pub fn folder(folder: &Path, count: usize) -> Result<Self> {
        let name = folder.display().to_string();
        let files = find_images(folder)?;
        if files.is_empty() {
            return Err(LabError::unfit(name, "png or jpeg images below it", "none"));
        }
        let count = count.min(files.len());
        let read = |i: usize| -> Result<Image> {
            let image = read_image(&files[i * files.len() / count])?;
            let (h, w) = (image.height(), image.width());
            let grey = Image::new(h, w, 1, image.luminance())?;
            let longer = h.max(w) as f64;
            let sized = |side: usize| (side as f64 * PHOTOGRAPH_SIDE as f64 / longer).round();
            let sized = |side| (sized(side) as usize).max(1);
            let canvas = 2 * PHOTOGRAPH_SIDE;
            Ok(resize(&grey, sized(h), sized(w))?.padded(canvas, canvas)?)
        };
        let content = Content::Pixels((0..count).map(read).collect::<Result<_>>()?);
        let (side, radius) = (2 * PHOTOGRAPH_SIDE, 0.5 * PHOTOGRAPH_SIDE as f64);
        Self { name, content, side, radius }.filled()
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
        Self { name: "smooth".into(), content, side: SMOOTH_SIDE, radius: 16.0 }.filled()
    }

    fn filled(self) -> Result<Self> {
        if self.is_empty() {
            return Err(LabError::unfit(self.name, "at least 1 image", "0"));
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
            Content::Pixels(images) => images.len(),
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

    /// The first `count` of them.
    pub(super) fn first(&self, count: usize) -> Self {
        let mut fewer = self.clone();
        match &mut fewer.content {
            Content::Pixels(images) => images.truncate(count),
            Content::Blobs(images) => images.truncate(count),
        }
        fewer
    }

    /// The same images with `margin` more pixels on every side.
    pub(super) fn with_margin(&self, margin: usize) -> Result<Self> {
        let side = self.side + 2 * margin;
        let content = match &self.content {
            Content::Pixels(images) => Content::Pixels(
                images.iter().map(|image| image.padded(side, side)).collect::<Result<_, _>>()?,
            ),
            blobs => blobs.clone(),
        };
        Ok(Self { side, content, ..self.clone() })
    }

    /// The images under a transform about their centre, `[n, side, side, 1]`.
    pub fn view(&self, transform: &Similarity, device: &Device) -> Result<Tensor<4>, sren::Error> {
        let images = match &self.content {
            Content::Pixels(images) => return warped(images, transform, device),
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
        Ok(Tensor::from_data(TensorData::new(data, shape), device))
    }
}
