//! Training: configuration, optimiser, schedule, the loop, and the run folder.
//!
//! Every draw follows from the config's seed and the step it is for, so that a run that was stopped
//! goes on as if it never had been.

pub(crate) mod checksum;
mod config;
mod drawn_positions;
mod fine_tuning;
mod image_folder;
mod images;
mod optimiser;
mod pose_cache;
mod request;
mod run_folder;
mod run_lock;
mod schedule;
mod trainer;

pub use config::{Preset, TrainingConfig};
pub(crate) use drawn_positions::with_positions;
pub use fine_tuning::FineTuning;
pub use image_folder::{ImageFolderConfig, class_weights};
pub use optimiser::{Optimiser, OptimiserKind};
pub use request::TrainingRequest;
pub(crate) use run_folder::parse_metrics;
pub use run_folder::{Checkpoint, EpochMetrics, RunFolder, kept_epoch};
pub use schedule::Schedule;
pub use trainer::{Event, Outcome, Trainer};
