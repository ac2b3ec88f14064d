//! A second look at the image, turned upright.
//!
//! Local frames forget how the parts of an object lie to each other, and a plain network does not,
//! but must see it upright. So the first look, in local frames, tells which turns of the image make
//! it upright, how likely each is, and a plain network of the same layout looks at the image turned
//! that way:
//!
//! ```text
//! ln p(class) = (1 - weight) ln p1(class) + weight ln (sum over turns of p1(turn) p2(class, image turned))
//! ```
//! If the image is turned by a step, the turns move on by one, and the plain network sees the same.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use sren_math::{About, Grid, Image, Interpolation, Similarity, border_mean, warp};

use super::block::{SimBlock, grids_through};
use super::resnet::SimResNetConfig;
use crate::error::{Error, Result};
use crate::{Frames, MaskedBatchNorm, MaskedBatchNormConfig, SimConv2d, SimConv2dConfig, pool};

const OPERATION: &str = "second look";
/// Turns less likely than this are not looked at.
const UNLIKELY: f32 = 0.05;

/// Configuration of a [`SecondLook`]. Its layers are those of the network it belongs to.
#[derive(Config, Debug)]
pub struct SecondLookConfig {
    /// Turns of an image that are looked at, at most.
    pub turns: usize,
    /// What the second look counts, beside the first; 0 to 1.
    pub weight: f64,
}

/// The plain network that looks at images turned upright. Made by [`SecondLookConfig`].
#[derive(Module, Debug)]
pub struct SecondLook {
    /// The convolution that reads the image.
    pub stem: SimConv2d,
    /// Its batch norm, with ReLU.
    pub norm: MaskedBatchNorm,
    /// The residual blocks.
    pub blocks: Vec<SimBlock>,
    /// From maximum and mean to classes.
    pub head: Linear,
    turns: usize,
    weight: f64,
}

/// One look: an image of the batch, the turn in radians, and how likely that makes it upright.
struct Look {
    image: usize,
    angle: f64,
    chance: f32,
}

impl SecondLookConfig {
    /// A new network with the layout of `first`.
    pub(super) fn init(&self, first: &SimResNetConfig, device: &Device) -> Result<SecondLook> {
        self.check(first)?;
        let SimResNetConfig { image_channels, stem_channels, stem_kernel, stem_stride, .. } =
            *first;
        let stem = SimConv2dConfig::new([image_channels, stem_channels], stem_kernel);
        let last = first.stages.last().map_or(stem_channels, |stage| stage.channels);
        Ok(SecondLook {
            stem: stem.with_stride(stem_stride).with_bias(false).init(device)?,
            norm: MaskedBatchNormConfig::new(stem_channels).with_relu(true).init(device)?,
            blocks: first.clone().with_relative_pose(false).blocks(device)?,
            head: LinearConfig::new(2 * last, first.classes).init(device),
            turns: self.turns,
            weight: self.weight,
        })
    }

    /// Refuses what is no second look of `first`.
    pub(super) fn check(&self, first: &SimResNetConfig) -> Result<()> {
        if self.turns == 0 || self.turns > 360 {
            return Err(Error::shape(OPERATION, "1 to 360 turns", self.turns.to_string()));
        }
        if !(0.0..=1.0).contains(&self.weight) {
            return Err(Error::shape(OPERATION, "a weight in 0..=1", self.weight.to_string()));
        }
        if !first.stem_window.is_empty() {
            let got = format!("{} layers in its window", first.stem_window.len());
            return Err(Error::shape(OPERATION, "a network whose stem has no window", got));
        }
        Ok(())
    }
}

impl SecondLook {
    /// Images `[n, h, w, c]`, as they are, -> logits `[n, classes]`.
    pub fn forward(&self, images: Tensor<4>) -> Result<Tensor<2>> {
        let [n, h, w, _] = images.dims();
        let pixels = Grid::pixels(h, w);
        let grids = grids_through(self.stem.output_grid(&pixels)?, &self.blocks)?;
        let (frames, mut grid) = (Frames::plain(&grids, n)?, grids[0]);
        // [n, h, w, c] -> [n, h / stride, w / stride, stem_channels]
        let mut x = self.stem.forward(images, &self.stem.taps(&frames, &pixels)?)?;
        x = self.norm.forward(x, &frames.mask(&grid)?)?;
        for block in &self.blocks {
            (x, grid) = block.forward(x, &frames, &grid)?;
        }
        let mean = pool::gated_mean(x.clone(), frames.gate(&grid, &x.device())?)?;
        // [n, h, w, c] -> [n, 2 c] -> [n, classes]
        Ok(self.head.forward(Tensor::cat(vec![pool::global_max(x)?, mean], 1)))
    }

    /// Logits `[n, classes]` of the first look and of the second, together: logarithms of
    /// probabilities.
    pub fn together(&self, first: Tensor<2>, second: Tensor<2>) -> Tensor<2> {
        let (first, second) = (log_softmax(first, 1), log_softmax(second, 1));
        first.mul_scalar(1.0 - self.weight) + second.mul_scalar(self.weight)
    }

    /// Logits `[n, classes]` of images `[n, h, w, c]`, each turned by the likeliest of its turns.
    /// `chances` `[n, turns]` are those of all turns of a circle to make it upright; turns are chosen
    /// without gradients.
    pub(super) fn forward_turned(
        &self,
        images: &Tensor<4>,
        chances: &Tensor<2>,
    ) -> Result<Tensor<2>> {
        let ([n, h, w, c], [_, turns]) = (images.dims(), chances.dims());
        let chances = values(chances.clone().into_data())?;
        let looks: Vec<Look> = chances
            .chunks_exact(turns)
            .enumerate()
            .flat_map(|(image, chances)| {
                let angle = |turn: usize| std::f64::consts::TAU * turn as f64 / turns as f64;
                let likeliest = likeliest(chances, self.turns).into_iter();
                likeliest.map(move |(turn, chance)| Look { image, angle: angle(turn), chance })
            })
            .collect();
        let pixels = values(images.to_data())?;
        let size = h * w * c;
        let turned = looks.par_iter().map(|look| {
            let image = pixels[look.image * size..][..size].to_vec();
            turned(Image::new(h, w, c, image)?, look.angle)
        });
        let turned = turned.collect::<Result<Vec<_>>>()?.concat();
        let mut share = vec![0.0f32; n * looks.len()];
        for (at, look) in looks.iter().enumerate() {
            share[look.image * looks.len() + at] = look.chance;
        }
        let device = images.device();
        let turned = TensorData::new(turned, [looks.len(), h, w, c]);
        // [looks, h, w, c] -> [looks, classes]
        let told = softmax(self.forward(Tensor::from_data(turned, &device))?, 1);
        let share = Tensor::<2>::from_data(TensorData::new(share, [n, looks.len()]), &device);
        Ok(share.matmul(told).add_scalar(f32::MIN_POSITIVE).log())
    }
}

/// Up to `count` peaks of the chances of turns around a circle, each with its neighbours' chances,
/// that are not `UNLIKELY`; they sum to 1.
fn likeliest(chances: &[f32], count: usize) -> Vec<(usize, f32)> {
    let turns = chances.len();
    if turns < 3 {
        return vec![(0, 1.0)];
    }
    let near = |turn: usize| [turn + turns - 1, turn, turn + 1].map(|turn| turn % turns);
    let mut peaks: Vec<f32> =
        (0..turns).map(|turn| near(turn).iter().map(|near| chances[*near]).sum()).collect();
    let mut found: Vec<(usize, f32)> = Vec::new();
    while found.len() < count {
        let best = (0..turns).max_by(|a, b| peaks[*a].total_cmp(&peaks[*b])).unwrap_or(0);
        if !found.is_empty() && peaks[best] < UNLIKELY {
            break;
        }
        found.push((best, peaks[best]));
        // What shares a turn with this peak is no other.
        for away in 0..turns.min(5) {
            peaks[(best + turns + away - turns.min(5) / 2) % turns] = 0.0;
        }
    }
    let sum: f32 = found.iter().map(|(_, chance)| chance).sum();
    // Chances that are no numbers stay that: a broken network shall be seen.
    found.iter_mut().for_each(|(_, chance)| *chance /= sum);
    found
}

/// The image turned about its centre; what comes in from outside has the colour of its border.
fn turned(image: Image, angle: f64) -> Result<Vec<f32>> {
    if angle == 0.0 {
        return Ok(image.data().to_vec());
    }
    let (h, w, c) = (image.height(), image.width(), image.channels());
    let border: Vec<f32> = (0..c)
        .map(|channel| {
            let plane: Vec<f32> = image.data().iter().skip(channel).step_by(c).copied().collect();
            border_mean(&plane, h, w) as f32
        })
        .collect();
    let level = |data: &[f32], sign: f32| -> Vec<f32> {
        data.iter().zip(border.iter().cycle()).map(|(value, mean)| value + sign * mean).collect()
    };
    let image = Image::new(h, w, c, level(image.data(), -1.0))?;
    let turn = Similarity::new(1.0, angle, [0.0; 2])?;
    let turned = warp(&image, &turn, About::Centre, Interpolation::Cubic);
    Ok(level(turned.data(), 1.0))
}

fn values(data: TensorData) -> Result<Vec<f32>> {
    data.try_into_vec::<f32>()
        .map_err(|e| Error::shape(OPERATION, "values of f32", format!("{e:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_turns_are_peaks_around_the_circle() {
        let mut chances = [0.0; 24];
        // Turn 23 has both its neighbours, turn 8 stands alone, turn 15 is unlikely.
        (chances[22], chances[23], chances[0]) = (0.1, 0.3, 0.2);
        (chances[8], chances[15]) = (0.36, 0.04);
        let found = likeliest(&chances, 3);
        assert_eq!(found.iter().map(|(turn, _)| *turn).collect::<Vec<_>>()[0], 23);
        assert!([7, 8, 9].contains(&found[1].0) && found.len() == 2, "{found:?}");
        assert!((found[0].1 - 0.6 / 0.96).abs() < 1e-6 && (found[1].1 - 0.36 / 0.96).abs() < 1e-6);
        assert_eq!(likeliest(&chances, 1), [(23, 1.0)]);
        assert_eq!(likeliest(&[1.0], 2), [(0, 1.0)]);
        assert_eq!(likeliest(&[0.1, 0.2, 0.3, 0.4], 4).len(), 1);
    }
}
