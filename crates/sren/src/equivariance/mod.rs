//! The equivariance error of any model, layer by layer (the paper's Section 5.1).
//!
//! A model is equivariant if its feature maps move with the image: `F(T x)(T p) = F(x)(p)` for
//! every similarity T and position p. [`measure`] says how far a model is from that, layer by
//! layer; a test of one's own model is a call and an assertion (`examples/assert_equivariance.rs`).

mod layers;
mod measure;
mod placement;

pub use layers::{NamedFeatures, network_layers, warped};
pub use measure::{LayerError, Protocol, measure};
