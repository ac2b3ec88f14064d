//! Inference: a trained model, what it does to images before it sees them, and its predictions.

mod dominant_pose;
mod model;
mod onnx;
mod onnx_check;
mod predictor;
mod preprocessing;

pub use dominant_pose::DominantPose;
pub use model::{BUNDLED, BUNDLED_CNN, Model, inference_device};
pub use onnx::ExportOptions;
pub use onnx_check::{OnnxCheck, check_onnx};
pub use predictor::{ClassProbability, Posterior, Prediction, Predictor, PreparedImage};
pub use preprocessing::Preprocessing;
