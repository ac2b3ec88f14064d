//! The image in log-polar coordinates about the object's centre, in units of its extent.

use std::f64::consts::TAU;

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::models::border::border_colour;
use crate::pose::Equivariance;

/// Least extent, in pixels.
pub(crate) const MIN_EXTENT: f32 = 1.0;

/// Where the log-polar coordinates of an image lie, in pixels.
#[derive(Debug, Clone, Copy)]
struct Origin {
    centre: [f32; 2],
    extent: f32,
}

impl Origin {
    /// Mean and root mean square distance of what differs from the border: pixels `[h, w, c]`,
    /// relative to its mean. Both move, turn and grow with the object.
    fn of(pixels: &[f32], [h, w, c]: [usize; 3]) -> Self {
        let weight = |at: usize| {
            pixels[at * c..][..c].iter().map(|value| f64::from(value.abs())).sum::<f64>()
        };
        // From the middle of the image: a blank one has its origin there.
        let point = |at: usize| {
            let [x, y] = [at % w, at / w].map(|x| x as f64);
            [x - 0.5 * (w as f64 - 1.0), y - 0.5 * (h as f64 - 1.0)]
        };
        let weights: Vec<f64> = (0..h * w).map(weight).collect();
        let sum = weights.iter().sum::<f64>().max(f64::from(f32::MIN_POSITIVE));
        let mean = |value: &dyn Fn([f64; 2]) -> f64| {
            weights.iter().enumerate().map(|(at, weight)| weight * value(point(at))).sum::<f64>()
                / sum
        };
        let [x, y] = [mean(&|[x, _]| x), mean(&|[_, y]| y)];
        let square = mean(&|[u, v]| (u - x).powi(2) + (v - y).powi(2));
        let centre = [x + 0.5 * (w as f64 - 1.0), y + 0.5 * (h as f64 - 1.0)].map(|x| x as f32);
        Self { centre, extent: (square.sqrt() as f32).max(MIN_EXTENT) }
    }
}

/// Samples of a circle: `angles` around it, `radii` from `inner` to `outer`, evenly in ln radius.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPolarGrid {
    pub(crate) angles: usize,
    pub(crate) radii: usize,
    pub(crate) inner: f64,
    pub(crate) outer: f64,
    /// The unit of both in a group without scale, in pixels.
    pub(crate) extent: f64,
}

impl LogPolarGrid {
    /// Images `[n, h, w, c]` -> `[n, angles, radii, c]` about each object's centre, its extent the
    /// unit of length, both changed by `jitter` `[n, 3]`: along x and y in extents, and ln extent.
    /// Colours are relative to the mean of the image's border. No gradient flows to the images.
    pub(crate) fn sample(
        self,
        images: &Tensor<4>,
        group: Equivariance,
        jitter: Option<&[f32]>,
    ) -> Result<Tensor<4>> {
        let ([n, h, w, c], device) = (images.dims(), images.device());
        let pixels = images
            .to_data()
            .try_into_vec::<f32>()
            .map_err(|e| Error::shape("LogPolar", "images of f32", format!("{e:?}")))?;
        let points = self.points();
        let mut values = vec![0.0f32; n * points.len() * c];
        let images =
            pixels.par_chunks_exact(h * w * c).zip(values.par_chunks_exact_mut(points.len() * c));
        images.enumerate().for_each(|(image, (pixels, values))| {
            let pixels = relative(pixels, [h, w, c]);
            let mut origin = Origin::of(&pixels, [h, w, c]);
            if !group.includes_scale() {
                origin.extent = self.extent as f32;
            }
            if let Some([x, y, ln_extent]) = jitter.and_then(|all| all[3 * image..].first_chunk()) {
                origin.centre[0] += x * origin.extent;
                origin.centre[1] += y * origin.extent;
                origin.extent *= ln_extent.exp();
            }
            for (point, out) in points.iter().zip(values.chunks_exact_mut(c)) {
                let at = [0, 1].map(|axis| origin.centre[axis] + origin.extent * point[axis]);
                add_sample(&pixels, [h, w, c], at, out);
            }
        });
        let shape = [n, self.angles, self.radii, c];
        Ok(Tensor::from_data(TensorData::new(values, shape), &device))
    }

    /// The samples (x, y) about the origin, in extents: `[angles, radii]`.
    pub(crate) fn points(self) -> Vec<[f32; 2]> {
        let growth = (self.outer / self.inner).ln() / (self.radii - 1) as f64;
        let radius = |at: usize| self.inner * (growth * at as f64).exp();
        let angle = |at: usize| TAU * at as f64 / self.angles as f64;
        let samples = (0..self.angles * self.radii).map(|at| [at / self.radii, at % self.radii]);
        samples
            .map(|[at, along]| {
                let ((sin, cos), radius) = (angle(at).sin_cos(), radius(along));
                [radius * cos, radius * sin].map(|x| x as f32)
            })
            .collect()
    }
}

/// The value of pixels `[h, w, c]` at (x, y), bilinear, zero outside, added to `out` `[c]`.
fn add_sample(pixels: &[f32], [h, w, c]: [usize; 3], [x, y]: [f32; 2], out: &mut [f32]) {
    // All four neighbours outside.
    if !(x > -1.0 && y > -1.0 && x < w as f32 && y < h as f32) {
        return;
    }
    let (left, above) = (x.floor(), y.floor());
    let (right, below) = (x - left, y - above);
    for (dx, dy, weight) in [
        (0, 0, (1.0 - right) * (1.0 - below)),
        (1, 0, right * (1.0 - below)),
        (0, 1, (1.0 - right) * below),
        (1, 1, right * below),
    ] {
        let [column, row] = [left as isize + dx, above as isize + dy];
        if (0..w as isize).contains(&column) && (0..h as isize).contains(&row) {
            let at = (row as usize * w + column as usize) * c;
            for (out, pixel) in out.iter_mut().zip(&pixels[at..][..c]) {
                *out += weight * pixel;
            }
        }
    }
}

/// Pixels `[h, w, c]` less the mean of their border, by channel.
fn relative(pixels: &[f32], size: [usize; 3]) -> Vec<f32> {
    let border = border_colour(pixels, size);
    pixels.iter().zip(border.iter().cycle()).map(|(value, level)| value - level).collect()
}
