//! The paper's Table 1: accuracies in per cent, trained on upright MNIST.

/// The paper's name of a network, and its accuracy upright, on R, on S and on SRT. The only
/// augmented network in the paper is SREN.
pub fn paper_row(model: &str, augmented: bool) -> Option<(&'static str, [f64; 4])> {
    match (model, augmented) {
        ("cnn", false) => Some(("CNN", [99.46, 44.41, 73.21, 33.56])),
        ("so2", false) => Some(("SO(2)-Conv", [99.23, 97.18, 72.85, 70.72])),
        ("scale", false) => Some(("R*-Conv", [99.31, 35.23, 99.21, 39.2])),
        ("sren", false) => Some(("SREN", [99.12, 96.91, 98.48, 92.3])),
        ("sren", true) => Some(("SREN+", [99.42, 98.3, 99.28, 95.1])),
        _ => None,
    }
}
