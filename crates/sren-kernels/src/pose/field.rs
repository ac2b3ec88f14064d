//! The pose field of a batch: output of the estimator, input of the similarity convolution.

use sren_math::{Grid, Pose, element_count};

use crate::error::{KernelError, Result};

/// Scale, angle and confidence at every grid position of every image, with the `poses` best poses per
/// position, best first. Arrays are `[batch, height, width, poses]`, confidence
/// `[batch, height, width]`.
///
/// ```
/// use sren_kernels::PoseField;
/// use sren_math::{Grid, Pose};
///
/// # fn main() -> sren_kernels::Result<()> {
/// let grid = Grid::pixels(2, 2);
/// let field = PoseField::identity(grid, 1)?;
/// assert_eq!(field.scale(), [1.0; 4]);
/// // All frames of the image rotated by 0.5 radians and scaled by 2.
/// let field = field.composed(&[Pose { scale: 2.0, angle: 0.5 }])?;
/// assert_eq!((field.scale()[3], field.angle()[3]), (2.0, 0.5));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PoseField {
    grid: Grid,
    batch: usize,
    poses: usize,
    scale: Vec<f32>,
    angle: Vec<f32>,
    weight: Vec<f32>,
    confidence: Vec<f32>,
}

impl PoseField {
    /// A field from its parts. Scales are finite and positive, angles finite, the weights of a
    /// position non-negative with sum 1, confidences in 0..=1.
    pub fn new(
        grid: Grid,
        batch: usize,
        poses: usize,
        scale: Vec<f32>,
        angle: Vec<f32>,
        weight: Vec<f32>,
        confidence: Vec<f32>,
    ) -> Result<Self> {
        const OPERATION: &str = "PoseField";
        if poses == 0 {
            return Err(KernelError::invalid(OPERATION, "at least 1 pose per position", "0"));
        }
        let all = element_count(OPERATION, &[batch, grid.height, grid.width, poses])?;
        let positions = all / poses;
        for (name, len, expected) in [
            ("scale", scale.len(), all),
            ("angle", angle.len(), all),
            ("weight", weight.len(), all),
            ("confidence", confidence.len(), positions),
        ] {
            if len != expected {
                return Err(KernelError::invalid(
                    OPERATION,
                    format!("{expected} values of {name}"),
                    format!("{len}"),
                ));
            }
        }
        let check = |name: &str, expected: &str, invalid: Option<&f32>| match invalid {
            Some(v) => Err(KernelError::invalid(OPERATION, expected, format!("{name} {v}"))),
            None => Ok(()),
        };
        check("scale", "finite scales > 0", scale.iter().find(|v| !(v.is_finite() && **v > 0.0)))?;
        check("angle", "finite angles", angle.iter().find(|v| !v.is_finite()))?;
        check(
            "confidence",
            "confidences in 0..=1",
            confidence.iter().find(|v| !(0.0..=1.0).contains(*v)),
        )?;
        check("weight", "weights in 0..=1", weight.iter().find(|v| !(0.0..=1.0).contains(*v)))?;
        for sum in weight.chunks_exact(poses).map(|w| w.iter().sum::<f32>()) {
            if (sum - 1.0).abs() > 1e-4 {
                return Err(KernelError::invalid(
                    OPERATION,
                    "weights of a position with sum 1",
                    format!("sum {sum}"),
                ));
            }
        }
        Ok(Self { grid, batch, poses, scale, angle, weight, confidence })
    }

    /// The field with scale 1, angle 0 and confidence 1 everywhere: similarity convolutions on it
    /// are plain convolutions. Returns an error if the field cannot exist in memory.
    pub fn identity(grid: Grid, batch: usize) -> Result<Self> {
        let n = element_count("PoseField::identity", &[batch, grid.height, grid.width])?;
        Ok(Self {
            grid,
            batch,
            poses: 1,
            scale: vec![1.0; n],
            angle: vec![0.0; n],
            weight: vec![1.0; n],
            confidence: vec![1.0; n],
        })
    }

    /// The same field with every scale set to `scale`: equivariant to rotation only.
    pub fn with_scale(mut self, scale: f32) -> Result<Self> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(KernelError::invalid(
                "PoseField::with_scale",
                "a finite scale > 0",
                format!("{scale}"),
            ));
        }
        self.scale.fill(scale);
        Ok(self)
    }

    /// The same field with every angle set to 0: equivariant to scale only.
    pub fn without_angle(mut self) -> Self {
        self.angle.fill(0.0);
        self
    }

    /// The same field with all poses of image i rotated and scaled by `by[i]`. Layers on it stay
    /// equivariant.
    pub fn composed(mut self, by: &[Pose]) -> Result<Self> {
        const OPERATION: &str = "PoseField::composed";
        if by.len() != self.batch {
            let expected = format!("{} poses, one per image", self.batch);
            return Err(KernelError::invalid(OPERATION, expected, by.len().to_string()));
        }
        if let Some(invalid) =
            by.iter().find(|p| !(p.scale.is_finite() && p.scale > 0.0 && p.angle.is_finite()))
        {
            let expected = "finite angles and finite scales > 0";
            return Err(KernelError::invalid(OPERATION, expected, format!("{invalid:?}")));
        }
        let image = self.grid.len() * self.poses;
        let scales = self.scale.chunks_exact_mut(image.max(1));
        for ((scale, angle), by) in scales.zip(self.angle.chunks_exact_mut(image.max(1))).zip(by) {
            scale.iter_mut().for_each(|scale| *scale *= by.scale as f32);
            angle.iter_mut().for_each(|angle| *angle += by.angle as f32);
        }
        Ok(self)
    }

    /// The same poses with other confidences, `[batch, height, width]`.
    pub fn with_confidence(mut self, confidence: Vec<f32>) -> Result<Self> {
        const OPERATION: &str = "PoseField::with_confidence";
        if confidence.len() != self.confidence.len() {
            let expected = format!("{} values", self.confidence.len());
            return Err(KernelError::invalid(OPERATION, expected, confidence.len().to_string()));
        }
        if let Some(invalid) = confidence.iter().find(|v| !(0.0..=1.0).contains(*v)) {
            let expected = "confidences in 0..=1";
            return Err(KernelError::invalid(OPERATION, expected, invalid.to_string()));
        }
        self.confidence = confidence;
        Ok(self)
    }

    /// The positions of the poses.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Number of images.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Number of poses per position.
    pub fn poses(&self) -> usize {
        self.poses
    }

    /// Scales in image pixels, `[batch, height, width, poses]`.
    pub fn scale(&self) -> &[f32] {
        &self.scale
    }

    /// Angles in radians, `[batch, height, width, poses]`.
    pub fn angle(&self) -> &[f32] {
        &self.angle
    }

    /// Weights of the poses of a position, with sum 1, `[batch, height, width, poses]`.
    pub fn weight(&self) -> &[f32] {
        &self.weight
    }

    /// Confidence in 0..=1, `[batch, height, width]`; 0 where the image has no pose.
    pub fn confidence(&self) -> &[f32] {
        &self.confidence
    }
}
