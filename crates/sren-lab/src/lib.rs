//! Experiments with sren: measurements and reports.

pub mod bench;

mod allocation;
mod artifact;
mod canvas;
mod error;
mod lemma;
mod pose_picture;

pub use allocation::keep_freed_memory;
pub use artifact::write_whole;
pub use error::{LabError, Result};
pub use lemma::{Lemma, LemmaProtocol, LemmaSubject, lemma};
pub use pose_picture::{PoseFigures, PosePicture, PosedPoint, Spread};
