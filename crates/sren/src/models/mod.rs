//! Whole networks, each for all four kinds of [`Equivariance`](crate::Equivariance) with the same
//! code.

mod architecture;
mod block;
mod bounds;
mod cost;
mod orientation;
mod resnet;
mod second_look;
mod window;

pub use architecture::Architecture;
pub use block::{Shortcut, SimBlock, SimBlockConfig};
pub use cost::{LayerCost, parameter_count};
pub use orientation::{Orientation, OrientationConfig, over_turns};
pub use resnet::{Pool, SimResNet, SimResNetConfig, StageConfig};
pub use second_look::{SecondLook, SecondLookConfig};
pub use window::{WindowLayer, WindowLayerConfig};
