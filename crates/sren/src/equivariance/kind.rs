//! What a network follows: rotations, scalings, both, or neither.

use burn::config::Config;
use sren_kernels::PoseField;

use crate::error::{Error, Result};

/// The transforms of the image that the frames follow. The same network, trained with another
/// choice, is the paper's SO(2)-Conv (`Rotation`), R*-Conv (`Scale`), SREN (`Similarity`) or the
/// plain CNN (`None`).
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Equivariance {
    /// Neither: every frame is the image's own. A plain convolution.
    None,
    /// Angles are followed; neighbouring taps are one grid step apart.
    Rotation,
    /// Scales are followed; the taps stand upright.
    Scale,
    /// Angles and scales are followed.
    Similarity,
}

impl Equivariance {
    /// `field` with what is not followed frozen.
    pub fn freeze(self, field: PoseField) -> Result<PoseField> {
        Ok(match self {
            Self::None => field.with_scale(1.0)?.without_angle(),
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

    /// Whether frames turn with the image.
    pub fn follows_rotation(self) -> bool {
        matches!(self, Self::Rotation | Self::Similarity)
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Rotation, Self::Scale, Self::Similarity];

    /// The name on the command line: cnn, so2, scale or sren.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "cnn",
            Self::Rotation => "so2",
            Self::Scale => "scale",
            Self::Similarity => "sren",
        }
    }
}

#[allow(clippy::derivable_impls)] // Burn's Config does not know the attribute `default`.
impl Default for Equivariance {
    fn default() -> Self {
        Self::Similarity
    }
}

impl std::str::FromStr for Equivariance {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| Error::shape("Equivariance", "sren, so2, scale or cnn", name))
    }
}
