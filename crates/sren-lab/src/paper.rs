//! The paper's Table 1: accuracies in per cent, trained on upright MNIST.

use sren_data::AugmentationPolicy;

/// The paper's name of a network, and its accuracy upright, on R, on S and on SRT. The only
/// augmented network in the paper is SREN.
pub fn paper_row(model: &str, augment: AugmentationPolicy) -> Option<(&'static str, [f64; 4])> {
    use AugmentationPolicy::{None as Upright, Paper};
    match (model, augment) {
        ("cnn", Upright) => Some(("CNN", [99.46, 44.41, 73.21, 33.56])),
        ("so2", Upright) => Some(("SO(2)-Conv", [99.23, 97.18, 72.85, 70.72])),
        ("scale", Upright) => Some(("R*-Conv", [99.31, 35.23, 99.21, 39.2])),
        ("sren", Upright) => Some(("SREN", [99.12, 96.91, 98.48, 92.3])),
        ("sren", Paper) => Some(("SREN+", [99.42, 98.3, 99.28, 95.1])),
        _ => None,
    }
}
