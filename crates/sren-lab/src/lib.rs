//! Experiments with sren: measurements and reports.

pub mod bench;
pub mod equivariance;
pub mod plot;
pub mod report;
pub mod threads;
pub mod training;

mod allocation;
mod artifact;
mod canvas;
mod confusion;
mod dominant_pose;
mod error;
mod evaluation;
mod features;
mod interrupt;
mod lemma;
mod lettering;
mod paper;
mod pose_picture;
mod prediction;
mod stability;
mod table;

pub use allocation::{LineAllocator, keep_freed_memory};
pub use artifact::write_whole;
pub use confusion::{Confusion, confusion};
pub use dominant_pose::DominantPose;
pub use error::{LabError, Result};
pub use evaluation::{
    Accuracy, ClassAccuracy, Evaluation, PhotographEvaluation, Transform, accuracy, plain_device,
    spread,
};
pub use features::{Shown, feature_picture};
pub use interrupt::stop_wish;
pub use lemma::{Lemma, LemmaProtocol, LemmaSubject, lemma};
pub use paper::paper_row;
pub use pose_picture::{PoseFigures, PosePicture, PosedPoint, Spread};
pub use prediction::{Guess, Prediction, Predictor};
pub use stability::{Stability, StabilityPoint, angle_chart, scale_chart, stability};
pub use table::{TableRow, table_text};
