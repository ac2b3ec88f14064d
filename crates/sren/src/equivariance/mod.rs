//! Equivariance: the kinds of it that a network can have, and how well any model keeps it.
//!
//! A model is equivariant if its feature maps move with the image: `F(T x)(T p) = F(x)(p)` for
//! every similarity T and position p. [`measure`] says how far a model is from that, layer by
//! layer; a test of one's own model is a call and an assertion (`examples/assert_equivariance.rs`).

mod kind;
mod layers;
mod measure;
mod placement;

pub use kind::Equivariance;
pub use layers::{FeatureMap, named, network_layers, warped};
pub use measure::{LayerError, Protocol, measure};
