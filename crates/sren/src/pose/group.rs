//! The equivariance group of a network: rotations, scalings, both, or neither.

use burn::config::Config;
use sren_kernels::PoseField;

use crate::error::{Error, Result};

/// The transforms of the image under which features are equivariant. The same network with another
/// group is the paper's SO(2)-Conv (`Rotation`), R*-Conv (`Scale`), SREN (`Similarity`) or the plain
/// CNN (`None`).
///
/// ```
/// use sren::Equivariance;
///
/// let group: Equivariance = "so2".parse()?;
/// assert!(group.includes_rotation() && !group.includes_scale());
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Equivariance {
    /// Translations only: every frame is the image's own. A plain convolution.
    None,
    /// Rotations: frames have the local orientation; neighbouring taps are one grid step apart.
    Rotation,
    /// Scalings: frames have the local scale; taps stand upright.
    Scale,
    /// Rotations and scalings.
    Similarity,
}

impl Equivariance {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::None, Self::Rotation, Self::Scale, Self::Similarity];

    /// `field` with scale 1 or angle 0 where the group does not include them.
    pub fn restrict(self, field: PoseField) -> Result<PoseField> {
        Ok(match self {
            Self::None => field.with_scale(1.0)?.without_angle(),
            Self::Rotation => field.with_scale(1.0)?,
            Self::Scale => field.without_angle(),
            Self::Similarity => field,
        })
    }

    /// Whether tap spacing follows the local scale. Otherwise it is that of a plain
    /// convolution.
    pub fn includes_scale(self) -> bool {
        matches!(self, Self::Scale | Self::Similarity)
    }

    /// Whether frames rotate with the image.
    pub fn includes_rotation(self) -> bool {
        matches!(self, Self::Rotation | Self::Similarity)
    }

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
