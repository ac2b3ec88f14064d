//! Where images come from, as named on the command line and in configs.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `mnist`, `stl10:DIR` or a folder of images.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Source {
    /// The bundled digits.
    #[default]
    Mnist,
    /// The folder of STL-10's binary files.
    Stl10(PathBuf),
    /// A folder of images in folders named by their class.
    Folder(PathBuf),
}

impl Source {
    /// Whether these are the bundled digits.
    pub fn is_mnist(&self) -> bool {
        *self == Self::Mnist
    }

    /// Whether its folder is there.
    pub fn exists(&self) -> bool {
        match self {
            Self::Mnist => true,
            Self::Stl10(folder) | Self::Folder(folder) => folder.exists(),
        }
    }

    /// The same with the absolute path of its folder; itself where the current folder is unknown.
    pub fn absolute(&self) -> Self {
        let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or(folder.clone());
        match self {
            Self::Mnist => Self::Mnist,
            Self::Stl10(folder) => Self::Stl10(absolute(folder)),
            Self::Folder(folder) => Self::Folder(absolute(folder)),
        }
    }
}

impl From<String> for Source {
    fn from(name: String) -> Self {
        match name.strip_prefix("stl10:") {
            _ if name == "mnist" => Self::Mnist,
            Some(folder) => Self::Stl10(folder.into()),
            None => Self::Folder(name.into()),
        }
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Mnist => f.write_str("mnist"),
            Self::Stl10(folder) => write!(f, "stl10:{}", folder.display()),
            Self::Folder(folder) => write!(f, "{}", folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_back() {
        for (name, source) in [
            ("mnist", Source::Mnist),
            ("stl10:a/b", Source::Stl10("a/b".into())),
            ("./mnist", Source::Folder("./mnist".into())),
        ] {
            assert_eq!(Source::from(name.to_string()), source);
            assert_eq!(source.to_string(), name);
        }
    }
}
