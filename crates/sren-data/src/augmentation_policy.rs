//! Which augmentation training images get, by name.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::augmentation::Augmentation;
use crate::error::{DataError, Result};

/// How training images are rotated, scaled and moved. Files of version 0.1 have `true` for the
/// paper's and `false` for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Written")]
#[non_exhaustive]
pub enum AugmentationPolicy {
    /// Not at all.
    #[default]
    None,
    /// As in the paper's SREN+: slightly.
    Paper,
    /// As the test sets are: what a network that is not equivariant needs.
    Full,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected none, paper or full")]
enum Written {
    Augmented(bool),
    Policy(Named),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Named {
    None,
    Paper,
    Full,
}

impl From<Written> for AugmentationPolicy {
    fn from(written: Written) -> Self {
        match written {
            Written::Augmented(false) | Written::Policy(Named::None) => Self::None,
            Written::Augmented(true) | Written::Policy(Named::Paper) => Self::Paper,
            Written::Policy(Named::Full) => Self::Full,
        }
    }
}

impl AugmentationPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Paper, Self::Full];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Paper => "paper",
            Self::Full => "full",
        }
    }

    /// What is added to the name of a network that was trained so, as the paper's SREN+.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Paper => "+",
            Self::Full => "-full",
        }
    }

    /// The transforms of training images on the canvas of digits.
    pub fn transforms(self) -> Augmentation {
        match self {
            Self::None => Augmentation::NONE,
            Self::Paper => Augmentation::PAPER,
            Self::Full => Augmentation::FULL,
        }
    }
}

impl FromStr for AugmentationPolicy {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| DataError::format("augmentation", "none, paper or full", name))
    }
}
