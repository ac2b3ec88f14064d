//! Inference: a trained model, what it does to images before it sees them, and its predictions.

mod dominant_pose;
mod model;
mod predictor;
mod preprocessing;

pub use dominant_pose::DominantPose;
pub use model::{BUNDLED, Model, inference_device};
pub use predictor::{ClassProbability, Posterior, Prediction, Predictor, PreparedImage};
pub use preprocessing::Preprocessing;
