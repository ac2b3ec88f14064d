//! One orientation and one size for a whole image, from its pose field. They rotate and grow with
//! the image.
//!
//! The orientation is where the angles of all positions, each weighted with its confidence, are
//! densest (a von Mises kernel); the scale is the weighted median at positions of about that angle.

use std::f64::consts::{PI, TAU};

use serde::Serialize;
use sren::{PoseField, wrap_angle};
use utoipa::ToSchema;

/// Bins of the circle.
const DIRECTIONS: usize = 360;
/// Directions to either side beyond which the kernel is below 1e-4.
const REACH: usize = 72;
/// Concentration of the kernel: about 15 degrees wide.
const CONCENTRATION: f64 = 15.0;
/// Angles within this of the densest count for the scale.
const NEAR: f64 = PI / 6.0;

/// The pose that stands for an image.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DominantPose {
    /// Direction from dark to bright, in degrees, clockwise from the right, above -180 to 180.
    pub orientation_deg: f64,
    /// Size of the structures that have this direction, in pixels.
    pub scale_px: f64,
}

impl DominantPose {
    /// That of image number `image` of the field; `None` if no position has a pose.
    pub fn of(field: &PoseField, image: usize) -> Option<Self> {
        let positions = field.grid().len();
        let confidence = field.confidence().get(image * positions..)?.get(..positions)?;
        let poses: Vec<[f64; 3]> = (0..positions)
            .filter(|at| confidence[*at] > 0.0)
            .map(|at| {
                let best = (image * positions + at) * field.poses();
                let (angle, scale) = (field.angle()[best], field.scale()[best]);
                [f64::from(confidence[at]), f64::from(angle), f64::from(scale)]
            })
            .collect();
        if poses.is_empty() {
            return None;
        }
        let step = TAU / DIRECTIONS as f64;
        // Each angle goes to the two directions it lies between.
        let mut histogram = [0.0; DIRECTIONS];
        for [weight, angle, _] in &poses {
            let place = angle.rem_euclid(TAU) / step;
            let (low, part) = (place as usize % DIRECTIONS, place.fract());
            histogram[low] += weight * (1.0 - part);
            histogram[(low + 1) % DIRECTIONS] += weight * part;
        }
        let kernel: Vec<f64> = (0..=2 * REACH)
            .map(|i| (i as f64 - REACH as f64) * step)
            .map(|angle| (CONCENTRATION * (angle.cos() - 1.0)).exp())
            .collect();
        let density = |direction: usize| -> f64 {
            let first = direction + DIRECTIONS - REACH;
            let near = |(i, weight): (usize, &f64)| weight * histogram[(first + i) % DIRECTIONS];
            kernel.iter().enumerate().map(near).sum()
        };
        let densities: Vec<f64> = (0..DIRECTIONS).map(density).collect();
        let best = (0..DIRECTIONS).fold(0, |b, i| if densities[i] > densities[b] { i } else { b });
        let beside = |by: usize| densities[(best + by) % DIRECTIONS];
        let [left, middle, right] = [beside(DIRECTIONS - 1), beside(0), beside(1)];
        let bend = 2.0 * middle - left - right;
        let offset = if bend > 0.0 { 0.5 * (right - left) / bend } else { 0.0 };
        let angle = wrap_angle((best as f64 + offset) * step);
        let mut near: Vec<[f64; 2]> = poses
            .iter()
            .filter(|[_, own, _]| wrap_angle(own - angle).abs() < NEAR)
            .map(|[weight, _, scale]| [*scale, *weight])
            .collect();
        near.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let half = 0.5 * near.iter().map(|[_, weight]| weight).sum::<f64>();
        let mut sum = 0.0;
        let median = near.iter().find(|[_, weight]| {
            sum += weight;
            sum >= half
        });
        median.map(|[scale, _]| Self { orientation_deg: angle.to_degrees(), scale_px: *scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sren::pose::Pose;
    use sren::{Grid, PoseEstimatorConfig};

    #[test]
    fn it_rotates_and_grows_with_the_field() {
        let grid = Grid::pixels(3, 3);
        let angle: Vec<f32> = [0.1, 0.15, 0.2, 0.12, 3.0, -2.0, 1.5, 0.1, 0.2].to_vec();
        let scale = vec![2.0, 3.0, 4.0, 2.5, 9.0, 9.0, 9.0, 3.0, 3.5];
        let weights = vec![1.0; 9];
        let field = PoseField::new(grid, 1, 1, scale, angle, weights.clone(), weights).unwrap();
        let one = DominantPose::of(&field, 0).unwrap();
        assert!((one.orientation_deg - 8.0).abs() < 4.0 && (2.5..=3.5).contains(&one.scale_px));
        let by = Pose { scale: 2.0, angle: 1.0 };
        let moved = DominantPose::of(&field.composed(&[by]).unwrap(), 0).unwrap();
        assert!((moved.orientation_deg - one.orientation_deg - 1f64.to_degrees()).abs() < 0.1);
        assert!((moved.scale_px - 2.0 * one.scale_px).abs() < 1e-4);
        assert_eq!(DominantPose::of(&PoseField::identity(grid, 1).unwrap(), 1), None);
    }

    #[test]
    fn a_flat_image_has_none() {
        let estimator = PoseEstimatorConfig::new().init().unwrap();
        let grid = Grid::pixels(16, 16);
        let images = vec![0.5; 256];
        let images = sren::pose::Images::new(&images, 1, 16, 16, 1).unwrap();
        assert_eq!(DominantPose::of(&estimator.field(&images, &grid).unwrap(), 0), None);
    }
}
