//! What a network follows: rotations, scalings, both, or neither.

use sren_kernels::PoseField;

use crate::error::Result;

/// The transforms of the image that the frames follow. The same network, trained with another
/// choice, is the paper's SO(2)-Conv (`Rotation`), R*-Conv (`Scale`), SREN (`Similarity`) or the
/// plain CNN (`None`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Equivariance {
    /// Neither: every frame is the image's own and every position is active. A plain convolution.
    None,
    /// Angles are followed; neighbouring taps are one grid step apart.
    Rotation,
    /// Scales are followed; the taps stand upright.
    Scale,
    /// Angles and scales are followed.
    #[default]
    Similarity,
}

impl Equivariance {
    /// `field` with what is not followed frozen.
    pub fn freeze(self, field: PoseField) -> Result<PoseField> {
        Ok(match self {
            Self::None => PoseField::identity(*field.grid(), field.batch()),
            Self::Rotation => field.with_scale(1.0)?,
            Self::Scale => field.without_angle(),
            Self::Similarity => field,
        })
    }

    /// Whether tap distances follow the image's scale. Where they do not, a layer's kappa has
    /// nothing to act on and taps are one grid step apart.
    pub fn follows_scale(self) -> bool {
        matches!(self, Self::Scale | Self::Similarity)
    }
}
