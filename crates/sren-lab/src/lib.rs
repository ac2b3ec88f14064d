//! Training, inference, evaluation, measurements and reports for sren.

pub mod bench;
pub mod equivariance;
pub mod inference;
pub mod plot;
pub mod progress;
pub mod report;
pub mod serving;
pub mod threads;
pub mod training;

mod active_share;
mod artifact;
mod canvas;
mod confusion;
mod error;
mod evaluate;
mod evaluation;
mod features;
mod grouped;
mod interrupt;
mod lemma;
mod lettering;
mod paper;
mod pose_picture;
mod stability;
mod table;
mod text_table;

pub use active_share::{ActiveShare, active_shares};
pub use artifact::atomic_write;
pub use confusion::{Confusion, confusion};
pub use error::{LabError, Result};
pub use evaluate::{EvaluationReport, EvaluationRequest, Subset, test_subset};
pub use evaluation::{
    Accuracy, ClassAccuracy, Evaluation, PhotographEvaluation, Transform, accuracy, spread,
};
pub use features::{Shown, feature_picture};
pub use grouped::grouped;
pub use interrupt::{end_on_interrupt, interrupt_code, interrupt_flag};
pub use lemma::{Lemma, LemmaProtocol, LemmaSubject, lemma};
pub use paper::paper_row;
pub use pose_picture::{PoseFigures, PosePicture, PosedPoint, Spread};
pub use stability::{Stability, StabilityPoint, angle_chart, scale_chart, stability};
pub use table::{TableRow, row_parts, table_text};
pub use text_table::TextTable;
