//! Canonicalisation: a plain network sees the image rotated upright. Not in the paper.
//!
//! Local frames lose how the parts of an object lie to each other. A plain network does not, but
//! must see the object upright. So a classifier in local frames gives the posterior over the
//! orientations of the image, and a plain branch of the same layout sees the image rotated back:
//!
//! ```text
//! ln p(class) = (1 - weight) ln p1(class) + weight ln (sum over rotations of p1(rotation) p2(class, image rotated))
//! ```
//! Rotating the image by a step shifts the posterior by one, and the branch sees the same.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use sren_math::{About, Image, Interpolation, Similarity, warp};

use super::border::border_colour;
use super::classifier::Classifier;
use super::heads::{Head, marginalise, orientation_posterior};
use crate::error::{Error, Result};
use crate::pose::Frames;

const OPERATION: &str = "CanonicalConfig";
/// Orientations less probable than this are not canonicalised.
pub(crate) const UNLIKELY: f32 = 0.05;

/// Configuration of a [`Canonicalised`] classifier. The branch has the layers of the classifier.
#[derive(Config, Debug)]
#[non_exhaustive]
pub struct CanonicalConfig {
    /// Most rotations of an image that the branch sees.
    pub rotations: usize,
    /// Weight of the branch beside the classifier, 0 to 1.
    pub weight: f64,
}

impl CanonicalConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.rotations == 0 || self.rotations > 360 {
            let got = self.rotations.to_string();
            return Err(Error::shape(OPERATION, "1 to 360 rotations", got));
        }
        if !(0.0..=1.0).contains(&self.weight) {
            return Err(Error::shape(OPERATION, "a weight in 0..=1", self.weight.to_string()));
        }
        Ok(())
    }
}

/// A classifier in local frames and a plain branch that sees the image rotated upright.
#[derive(Module, Debug)]
pub struct Canonicalised {
    /// In local frames.
    pub classifier: Classifier,
    /// The plain branch.
    pub branch: Classifier,
    pub(crate) rotations: usize,
    pub(crate) weight: f64,
}

/// An image of the batch, a rotation in radians, and the probability that it makes the image upright.
struct View {
    image: usize,
    angle: f64,
    probability: f32,
}

impl Canonicalised {
    /// Both branches with backbones that do not learn.
    pub fn with_frozen_backbones(self) -> Self {
        Self {
            classifier: self.classifier.with_frozen_backbone(),
            branch: self.branch.with_frozen_backbone(),
            ..self
        }
    }

    /// `classifier` with a plain `branch`.
    pub fn new(
        classifier: Classifier,
        branch: Classifier,
        config: &CanonicalConfig,
    ) -> Result<Self> {
        config.check()?;
        let CanonicalConfig { rotations, weight } = *config;
        Ok(Self { classifier, branch, rotations, weight })
    }

    /// Images `[n, h, w, c]` -> logits `[n, classes]`.
    pub fn forward_in(&self, images: Tensor<4>, frames: &Frames) -> Result<Tensor<2>> {
        let prior = self.classifier.head.upright_prior();
        let scores = self.classifier.scores_in(images.clone(), frames)?;
        let first = marginalise(scores.clone(), prior);
        let second = self.forward_branch(&images, &orientation_posterior(scores, prior))?;
        Ok(self.combine(first, second))
    }

    /// For each of images `[n, h, w, c]`, the least change of an orientation's probability for which
    /// the branch sees the image rotated otherwise: where it is no more than rounding, the prediction
    /// may change with the last bits.
    pub fn rotation_margins(&self, images: Tensor<4>, frames: &Frames) -> Result<Vec<f32>> {
        let scores = self.classifier.scores_in(images, frames)?;
        let posterior = orientation_posterior(scores, self.classifier.head.upright_prior());
        let [_, orientations] = posterior.dims();
        let rows = read(posterior.into_data())?;
        let rows = rows.chunks_exact(orientations);
        Ok(rows.map(|posterior| likeliest(posterior, self.rotations).margin).collect())
    }

    /// Logits `[n, classes]` of classifier and branch -> logarithms of their weighted geometric mean.
    pub fn combine(&self, classifier: Tensor<2>, branch: Tensor<2>) -> Tensor<2> {
        let (classifier, branch) = (log_softmax(classifier, 1), log_softmax(branch, 1));
        classifier.mul_scalar(1.0 - self.weight) + branch.mul_scalar(self.weight)
    }

    /// Logits `[n, classes]` of images `[n, h, w, c]`, each rotated upright by the likeliest
    /// orientations of `posterior` `[n, orientations]`. No gradient flows through the choice.
    fn forward_branch(&self, images: &Tensor<4>, posterior: &Tensor<2>) -> Result<Tensor<2>> {
        let ([n, h, w, c], [_, orientations]) = (images.dims(), posterior.dims());
        let posterior = read(posterior.clone().into_data())?;
        let angle = |step: usize| std::f64::consts::TAU * step as f64 / orientations as f64;
        let views: Vec<View> = posterior
            .chunks_exact(orientations)
            .enumerate()
            .flat_map(|(image, posterior)| {
                let likeliest = likeliest(posterior, self.rotations).rotations.into_iter();
                likeliest.map(move |(step, probability)| View {
                    image,
                    angle: angle(step),
                    probability,
                })
            })
            .collect();
        let pixels = read(images.to_data())?;
        let size = h * w * c;
        let upright = views.par_iter().map(|view| {
            let image = pixels[view.image * size..][..size].to_vec();
            rotated(Image::new(h, w, c, image)?, view.angle)
        });
        let upright = upright.collect::<Result<Vec<_>>>()?.concat();
        let mut share = vec![0.0f32; n * views.len()];
        for (at, view) in views.iter().enumerate() {
            share[view.image * views.len() + at] = view.probability;
        }
        let device = images.device();
        let upright = TensorData::new(upright, [views.len(), h, w, c]);
        // [views, h, w, c] -> [views, classes]
        let logits = self.branch.forward(Tensor::from_data(upright, &device))?;
        let share = Tensor::<2>::from_data(TensorData::new(share, [n, views.len()]), &device);
        // [n, views] x [views, classes]
        Ok(share.matmul(softmax(logits, 1)).add_scalar(f32::MIN_POSITIVE).log())
    }
}

fn read(data: TensorData) -> Result<Vec<f32>> {
    data.try_into_vec::<f32>()
        .map_err(|e| Error::shape("Canonicalised", "values of f32", format!("{e:?}")))
}

/// The likeliest orientations of an image.
#[derive(Debug)]
struct Likeliest {
    /// Number of the orientation and probability, which are normalised.
    rotations: Vec<(usize, f32)>,
    /// The least change of a probability that chooses others.
    margin: f32,
}

/// Up to `count` peaks of a posterior over the orientations of a circle, each with the probability of
/// its neighbours, none below `UNLIKELY`.
fn likeliest(posterior: &[f32], count: usize) -> Likeliest {
    let steps = posterior.len();
    let mut margin = f32::INFINITY;
    if steps < 3 {
        return Likeliest { rotations: vec![(0, 1.0)], margin };
    }
    let near = |step: usize| [step + steps - 1, step, step + 1].map(|step| step % steps);
    let mut peaks: Vec<f32> =
        (0..steps).map(|step| near(step).iter().map(|near| posterior[*near]).sum()).collect();
    let mut found: Vec<(usize, f32)> = Vec::new();
    while found.len() < count {
        let best = (0..steps).max_by(|a, b| peaks[*a].total_cmp(&peaks[*b])).unwrap_or(0);
        if !found.is_empty() {
            margin = margin.min((peaks[best] - UNLIKELY).abs());
            if peaks[best] < UNLIKELY {
                break;
            }
        }
        let others = (0..steps).filter(|step| *step != best).map(|step| peaks[step]);
        margin = margin.min(peaks[best] - others.fold(0.0, f32::max));
        found.push((best, peaks[best]));
        // What shares an orientation with this peak is no other peak.
        for away in 0..steps.min(5) {
            peaks[(best + steps + away - steps.min(5) / 2) % steps] = 0.0;
        }
    }
    let sum: f32 = found.iter().map(|(_, probability)| probability).sum();
    // NaN stays NaN: a broken network must not go unnoticed.
    found.iter_mut().for_each(|(_, probability)| *probability /= sum);
    Likeliest { rotations: found, margin }
}

/// The image rotated about its centre; what comes in from outside has the mean colour of its border.
fn rotated(image: Image, angle: f64) -> Result<Vec<f32>> {
    if angle == 0.0 {
        return Ok(image.data().to_vec());
    }
    let (h, w, c) = (image.height(), image.width(), image.channels());
    let border = border_colour(image.data(), [h, w, c]);
    let level = |data: &[f32], sign: f32| -> Vec<f32> {
        data.iter().zip(border.iter().cycle()).map(|(value, mean)| value + sign * mean).collect()
    };
    let image = Image::new(h, w, c, level(image.data(), -1.0))?;
    let rotation = Similarity::new(1.0, angle, [0.0; 2])?;
    let rotated = warp(&image, &rotation, About::Centre, Interpolation::Cubic);
    Ok(level(rotated.data(), 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_orientations_are_peaks_around_the_circle() {
        let mut posterior = [0.0; 24];
        // 23 has both its neighbours, 8 stands alone, 15 is unlikely.
        (posterior[22], posterior[23], posterior[0]) = (0.1, 0.3, 0.2);
        (posterior[8], posterior[15]) = (0.36, 0.04);
        let Likeliest { rotations: found, margin } = likeliest(&posterior, 3);
        // 7, 8 and 9 share all that they have.
        assert_eq!(margin, 0.0);
        assert_eq!(found.iter().map(|(step, _)| *step).collect::<Vec<_>>()[0], 23);
        assert!([7, 8, 9].contains(&found[1].0) && found.len() == 2, "{found:?}");
        assert!((found[0].1 - 0.6 / 0.96).abs() < 1e-6 && (found[1].1 - 0.36 / 0.96).abs() < 1e-6);
        let first = likeliest(&posterior, 1);
        assert_eq!(first.rotations, [(23, 1.0)]);
        // 22 and 0 have 0.4 and 0.5.
        assert!((first.margin - 0.1).abs() < 1e-6, "{first:?}");
        assert_eq!(likeliest(&[1.0], 2).rotations, [(0, 1.0)]);
        assert_eq!(likeliest(&[0.1, 0.2, 0.3, 0.4], 4).rotations.len(), 1);
    }
}
