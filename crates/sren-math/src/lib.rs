//! Sim(2), warps and the scalable Fourier-Argand representation: the exact f64 reference.

mod error;
mod grid;
mod similarity;

pub use error::{MathError, Result};
pub use grid::Grid;
pub use similarity::{Similarity, wrap_angle};
