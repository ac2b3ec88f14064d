//! The paper's residual networks, every convolution a similarity convolution.

mod block;
mod resnet;

pub use block::{Shortcut, SimBlock, SimBlockConfig};
pub use resnet::{SimResNet, SimResNetConfig, StageConfig};
