//! Whether an exported file gives what the network gives, run by another engine: `rten`.
//!
//! The images are those that find faults: digits in any pose, half planes, single dots, noise, bright
//! borders, nothing at all.

use std::f64::consts::TAU;

use burn::tensor::activation::softmax;
use burn::tensor::{Int, Tensor, TensorData};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use sren::export::{Layout, OnnxModel, Output};
use sren::models::Network;
use sren::{About, Image, Interpolation, Similarity, warp};
use sren_data::{Mnist, Split};

use super::model::{Model, inference_device};
use super::onnx::ExportOptions;
use crate::error::{LabError, Result};

/// Orientations whose probabilities differ by less are equally probable: what f32 leaves of them.
const AMBIGUOUS: f32 = 1e-5;
/// Digits among the images.
const DIGITS: usize = 16;
/// Seed of the images.
const SEED: u64 = 7;
/// Images that are run at once.
const BATCH: usize = 8;
/// Largest difference of a probability that rounding explains;
const TOLERANCE: f64 = 1e-4;
/// with resizing in the graph, where a value between two bytes may be rounded to either.
const RESIZED_TOLERANCE: f64 = 1e-2;

/// An exported file beside its network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OnnxCheck {
    /// The engine that ran the file.
    pub engine: &'static str,
    /// Number of images that were compared.
    pub images: usize,
    /// Images that were left out: a canonicalised branch sees them in one of two orientations that are
    /// equally probable within 1e-5, and engines choose either.
    pub ambiguous: usize,
    /// Largest difference of a probability that is allowed: 1e-4, or 1e-2 with preprocessing in the
    /// graph.
    pub tolerance: f64,
    /// Largest difference of a probability.
    pub probability_difference: f64,
    /// Largest difference of a logit.
    pub logit_difference: f64,
    /// Images of which the most probable class is the same, or as probable within the tolerance.
    pub equal_classes: usize,
}

impl OnnxCheck {
    /// Whether file and network agree within the tolerance.
    pub fn passed(&self) -> bool {
        // NaN is no agreement.
        let within = self.probability_difference <= self.tolerance;
        within && self.images > 0 && self.equal_classes == self.images
    }
}

/// Runs `file`, exported from `model` with `options`, beside the network. Returns an error if the
/// engine lacks an operator of the file, or if the file does not give logits.
pub fn check_onnx(model: &Model, file: &OnnxModel, options: &ExportOptions) -> Result<OnnxCheck> {
    let fail = |expected: &str, got: String| LabError::invalid("check", expected, got);
    if !options.outputs.contains(&Output::Logits) {
        return Err(fail("logits among the outputs", format!("{:?}", options.outputs)));
    }
    let engine = rten::Model::load(file.bytes.clone()).map_err(|e| {
        let got = format!("{e}; scripts/check_onnx.py checks with onnxruntime");
        fail("a file that rten can run", got)
    })?;
    let failed = |e: &dyn std::fmt::Display| fail("a file that rten can run", e.to_string());
    let input = engine.node_id("images").map_err(|e| failed(&e))?;
    let output = engine.node_id("logits").map_err(|e| failed(&e))?;
    let preprocessing = model.config.preprocessing();
    let size = match (options.with_preprocessing, options.size) {
        // Any, not square.
        (true, _) => [9, 4].map(|more| preprocessing.letterbox.side + more),
        (false, Some(side)) => [side; 2],
        (false, None) => preprocessing.padding.canvas,
    };
    let images = images(size, preprocessing.letterbox.channels)?;
    let mut check = OnnxCheck {
        engine: "rten",
        images: 0,
        ambiguous: 0,
        tolerance: if options.with_preprocessing { RESIZED_TOLERANCE } else { TOLERANCE },
        probability_difference: 0.0,
        logit_difference: 0.0,
        equal_classes: 0,
    };
    for batch in images.chunks(BATCH) {
        let seen = match options.with_preprocessing {
            false => tensor(batch),
            true => {
                let apply = |image: &Image| preprocessing.apply(image, &Similarity::IDENTITY);
                tensor(&batch.iter().map(apply).collect::<Result<Vec<_>>>()?)
            }
        };
        let ours = model.network.forward(seen.clone())?;
        let pixels = match options.layout {
            Layout::Nhwc => tensor(batch),
            Layout::Nchw => tensor(batch).permute([0, 3, 1, 2]),
        };
        let shape = pixels.dims();
        let values: Vec<f32> = pixels.into_data().iter::<f32>().collect();
        let value = rten::Value::from_shape(&shape[..], values).map_err(|e| failed(&e))?;
        let [logits] =
            engine.run_n(vec![(input, value.into())], [output], None).map_err(|e| failed(&e))?;
        let (shape, logits) =
            logits.into_shape_vec::<f32, 2>().map_err(|e| failed(&format!("{e:?}")))?;
        if shape != ours.dims() {
            return Err(failed(&format!("logits of {shape:?}")));
        }
        let theirs = Tensor::<2>::from_data(TensorData::new(logits, shape), &inference_device());
        check.add(ours, theirs, &definite(&model.network, seen)?);
    }
    Ok(check)
}

/// Which of images `[n, h, w, c]` have one likeliest orientation, where that matters.
fn definite(network: &Network, images: Tensor<4>) -> Result<Vec<bool>> {
    let Network::Canonicalised(pair) = network else { return Ok(vec![true; images.dims()[0]]) };
    let frames = network.frames(&images)?;
    let margins = pair.rotation_margins(images, &frames)?;
    Ok(margins.iter().map(|margin| *margin > AMBIGUOUS).collect())
}

/// Images of one size as `[n, h, w, c]`.
fn tensor(images: &[Image]) -> Tensor<4> {
    let [height, width, channels] =
        images.first().map_or([0; 3], |image| [image.height(), image.width(), image.channels()]);
    let pixels: Vec<f32> = images.iter().flat_map(Image::data).copied().collect();
    let data = TensorData::new(pixels, [images.len(), height, width, channels]);
    Tensor::from_data(data, &inference_device())
}

impl OnnxCheck {
    /// Compares logits `[n, classes]` of those images that are `definite`.
    fn add(&mut self, ours: Tensor<2>, theirs: Tensor<2>, definite: &[bool]) {
        let [_, classes] = ours.dims();
        let index: Vec<i32> = (0..).zip(definite).filter(|(_, d)| **d).map(|(i, _)| i).collect();
        self.ambiguous += definite.len() - index.len();
        self.images += index.len();
        if index.is_empty() {
            return;
        }
        let count = index.len();
        let index = TensorData::new(index, [count]);
        let index: Tensor<1, Int> = Tensor::from_data(index, &ours.device());
        let [ours, theirs] = [ours, theirs].map(|logits| logits.select(0, index.clone()));
        let rows = |logits: Tensor<2>| -> Vec<f64> { logits.into_data().iter::<f64>().collect() };
        let difference = |a: &[f64], b: &[f64]| {
            // f64::max would pass over NaN.
            let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
            differences.fold(0.0, |most: f64, d| if d <= most { most } else { d })
        };
        let worse = |old: f64, new: f64| if new <= old { old } else { new };
        let logits = [ours.clone(), theirs.clone()].map(rows);
        self.logit_difference = worse(self.logit_difference, difference(&logits[0], &logits[1]));
        let [ours, theirs] = [ours, theirs].map(|logits| rows(softmax(logits, 1)));
        let largest = difference(&ours, &theirs);
        self.probability_difference = worse(self.probability_difference, largest);
        for (ours, theirs) in ours.chunks_exact(classes).zip(theirs.chunks_exact(classes)) {
            let best = |row: &[f64]| {
                (0..classes)
                    .fold(0, |best, class| if row[class] > row[best] { class } else { best })
            };
            let [a, b] = [best(ours), best(theirs)];
            self.equal_classes += usize::from(a == b || ours[a] - ours[b] < self.tolerance);
        }
    }
}

/// Images `[height, width, channels]` on which an exported network has to agree.
fn images([height, width]: [usize; 2], channels: usize) -> Result<Vec<Image>> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut images = Vec::new();
    let digits = Mnist::load(Split::Test)?;
    for index in 0..DIGITS {
        let digit = digits.image(index).unwrap_or(Image::zeros(Mnist::SIDE, Mnist::SIDE, 1)?);
        let side = Mnist::SIDE;
        let canvas = digit.padded(height.max(side), width.max(side))?;
        // The first as they are, then rotated and scaled.
        let (scale, angle) = match index {
            0..4 => (1.0, 0.0),
            _ => (random.random_range(0.6..1.8), random.random_range(0.0..TAU)),
        };
        let transform = Similarity::new(scale, angle, [0.0; 2])?;
        let canvas = warp(&canvas, &transform, About::Centre, Interpolation::Bilinear);
        images.push(Image::from_fn(height, width, |x, y| {
            f64::from(canvas.data()[y as usize * canvas.width() + x as usize])
        })?);
    }
    let centre = [0.5 * (width as f64 - 1.0), 0.5 * (height as f64 - 1.0)];
    for step in 0..6 {
        let (sin, cos) = (TAU * f64::from(step) / 24.0).sin_cos();
        images.push(Image::from_fn(height, width, |x, y| {
            f64::from(u8::from(cos * (x - centre[0]) + sin * (y - centre[1]) > 0.3))
        })?);
    }
    for [x0, y0] in [[0.0, 0.0], centre.map(f64::floor), [width as f64 - 1.0, 2.0]] {
        images.push(Image::from_fn(height, width, |x, y| f64::from(u8::from([x, y] == [x0, y0])))?);
    }
    for value in [0.0, 1.0, 0.4] {
        images.push(Image::from_fn(height, width, |_, _| value)?);
    }
    for _ in 0..2 {
        let noise = (0..height * width).map(|_| random.random_range(0.0f32..1.0)).collect();
        images.push(Image::new(height, width, 1, noise)?);
    }
    let [right, bottom] = [width as f64 - 1.0, height as f64 - 1.0];
    images.push(Image::from_fn(height, width, |x, y| {
        f64::from(u8::from(x == 0.0 || y == 0.0 || x == right || y == bottom))
    })?);
    images.push(Image::from_fn(height, width, |x, y| {
        f64::from(u8::from(y < 2.0 || x > right - 2.0))
    })?);
    // A colour of its own for each channel.
    let coloured = |image: Image| -> Result<Image> {
        let tint = |channel: usize| 1.0 - 0.3 * channel as f32 / channels as f32;
        let values = image.data().iter().flat_map(|v| (0..channels).map(move |c| v * tint(c)));
        Ok(Image::new(height, width, channels, values.collect())?)
    };
    images.into_iter().map(coloured).collect()
}
