//! The pose estimator by its definition: every ring sample of every harmonic, one point at a time,
//! in f64. Slow; the kernels are tested against it.

use num_complex::Complex64;

use crate::image::{Image, border_mean};
use crate::pose::{Pose, PoseReading, PoseSpec};
use crate::warp::{Interpolation, sample};

/// The poses of a one-channel image at any point, and the confidence.
pub fn read_pose(spec: &PoseSpec, image: &Image, point: [f64; 2]) -> (Vec<PoseReading>, f64) {
    let terms = &spec.params().template.angular;
    let rings = spec.rings().len();
    let (height, width) = (image.height(), image.width());
    let level = border_mean(image.data(), height, width) as f32;
    let levelled = image.data().iter().map(|v| v - level).collect();
    let image = &Image::from_parts(height, width, 1, levelled);
    // [terms, rings]
    let harmonics: Vec<Complex64> = terms
        .iter()
        .flat_map(|(k, _)| {
            spec.rings().iter().map(move |ring| {
                let mut value = [0.0f32];
                let sum: Complex64 = ring
                    .points()
                    .map(|([dx, dy], theta)| {
                        let at = [point[0] + dx, point[1] + dy];
                        sample(image, at, Interpolation::Bilinear, &mut value);
                        f64::from(value[0]) * Complex64::cis(-f64::from(*k) * theta)
                    })
                    .sum();
                sum / ring.samples as f64
            })
        })
        .collect();
    let responses = |scale: usize, out: &mut [Complex64]| {
        let weights = &spec.weights()[scale * rings..][..rings];
        for (g, f) in out.iter_mut().zip(harmonics.chunks_exact(rings)) {
            *g = f.iter().zip(weights).map(|(f, w)| f * w).sum();
        }
    };
    let scores: Vec<f32> = (0..spec.scales().len())
        .map(|j| {
            let mut g = vec![Complex64::ZERO; terms.len()];
            responses(j, &mut g);
            spec.best_angle(&g).0 as f32
        })
        .collect();
    let empty = PoseReading { pose: Pose::IDENTITY, weight: 0.0 };
    let mut readings = vec![empty; spec.params().poses];
    let confidence = spec.read(&scores, responses, &mut readings, &mut Vec::new());
    (readings, confidence)
}
