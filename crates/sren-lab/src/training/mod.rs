//! Training: recipe, optimiser, schedule, the loop, and the run folder it leaves.
//!
//! Every draw follows from the recipe's seed and the step it is for, so that a run that was stopped
//! goes on as if it never had been.

mod drawn_positions;
mod images;
mod kept_poses;
mod loss;
mod optimiser;
mod photographs;
mod recipe;
mod run_folder;
mod schedule;
mod trained;
mod trainer;

pub(crate) use drawn_positions::with_positions;
pub use images::Presentation;
pub use optimiser::{Optimiser, OptimiserKind};
pub use photographs::{Photographs, class_weights};
pub use recipe::{Preset, Recipe};
pub use run_folder::{Checkpoint, EpochMetrics, RunFolder};
pub use schedule::Schedule;
pub use trained::{BUNDLED, Trained};
pub use trainer::{Event, Outcome, Trainer};
