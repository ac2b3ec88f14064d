//! Export to ONNX: a network as one file of standard operators, which runs without this crate.
//!
//! ```text
//! images -> preprocessing -> pose -> backbone -> head -> logits
//! ```
//! Every part of a network adds its nodes to a graph in a function of its own, in the
//! order of the paper; a new part is a new function. Weights are constants, batch norm is folded into
//! kernels, the number of images stays open. Poses are estimated inside the graph.
//!
//! | part | module |
//! |---|---|
//! | pose estimator (4.1) | `pose`, `frames` |
//! | similarity convolution, batch norm (4.2, 4.3) | `simconv`, `convolution` |
//! | residual backbone (5) | `residual` |
//! | patch encoder, heads, branches | `patches`, `heads`, `log_polar`, `canonical` |
//! | letterbox, padding, mask | `preprocessing` |
//! | the file | `graph`, `protobuf` |

mod canonical;
mod convolution;
mod frames;
mod graph;
mod heads;
mod log_polar;
mod network;
mod patches;
mod pose;
mod preprocessing;
mod protobuf;
mod residual;
mod simconv;

pub use preprocessing::InputPreprocessing;

use crate::error::{Error, Result};
use crate::models::Network;

/// How a network becomes an ONNX file.
///
/// ```
/// use burn::tensor::Device;
/// use sren::export::OnnxOptions;
/// use sren::models::Architecture;
///
/// let network = Architecture::Blocks.config(1, 10).init(&Device::flex())?;
/// let model = network.to_onnx(&OnnxOptions::new([56, 56]))?;
/// println!("{} nodes, {} bytes", model.nodes, model.bytes.len());
/// # assert!(model.nodes > 100 && model.opset == 17);
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OnnxOptions {
    /// Height and width of the images that the network sees.
    pub size: [usize; 2],
    /// The order of the axes of the input.
    pub layout: Layout,
    /// How similarity convolutions sample their input.
    pub taps: Taps,
    /// What the graph gives.
    pub outputs: Vec<Output>,
    /// What is done to images before the network sees them; none: the input is `size` already.
    pub preprocessing: Option<InputPreprocessing>,
    /// Text by name, for the file's metadata.
    pub metadata: Vec<(String, String)>,
}

impl OnnxOptions {
    /// Images `[n, c, h, w]` of `size`, taps by `GridSample`, logits and probabilities.
    pub fn new(size: [usize; 2]) -> Self {
        Self {
            size,
            layout: Layout::Nchw,
            taps: Taps::Grid,
            outputs: vec![Output::Logits, Output::Probabilities],
            preprocessing: None,
            metadata: Vec::new(),
        }
    }

    /// The version of the operators: the lowest that has all that are needed.
    fn opset(&self) -> i64 {
        match self.taps {
            Taps::Deform => 19,
            Taps::Grid => 17,
        }
    }
}

/// A network as an ONNX file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OnnxModel {
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// Number of nodes.
    pub nodes: usize,
    /// Version of the operators.
    pub opset: i64,
}

/// The order of the axes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `[n, c, h, w]`, as most runtimes have it.
    Nchw,
    /// `[n, h, w, c]`, as decoded images are.
    Nhwc,
}

/// How similarity convolutions sample their input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taps {
    /// By `GridSample`, which every runtime has, then a product.
    Grid,
    /// By `DeformConv`, of version 19, in one operator. Layers with relative poses or several poses
    /// per position, and the patch encoder, stay with `GridSample`.
    Deform,
}

impl std::str::FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "nchw" => Ok(Self::Nchw),
            "nhwc" => Ok(Self::Nhwc),
            _ => Err(Error::shape("layout", "nchw or nhwc", name)),
        }
    }
}

impl std::str::FromStr for Taps {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "grid" => Ok(Self::Grid),
            "deform" => Ok(Self::Deform),
            _ => Err(Error::shape("taps", "grid or deform", name)),
        }
    }
}

/// An output of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// `logits` `[n, classes]`.
    Logits,
    /// `probabilities` `[n, classes]`.
    Probabilities,
    /// `poses` `[n, 4, h, w]` on the finest grid: scale in pixels, cosine and sine of the angle,
    /// confidence.
    Poses,
    /// `features` `[n, c, h, w]`: the last feature map.
    Features,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Logits, Self::Probabilities, Self::Poses, Self::Features];

    /// Its name in the graph.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Probabilities => "probabilities",
            Self::Poses => "poses",
            Self::Features => "features",
        }
    }
}

impl std::str::FromStr for Output {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| Error::shape("output", "logits, probabilities, poses or features", name))
    }
}

impl Network {
    /// The network as an ONNX file, for inference. Returns an error if images of this size have no
    /// poses, or if poses are asked of a plain CNN.
    pub fn to_onnx(&self, options: &OnnxOptions) -> Result<OnnxModel> {
        let graph = network::graph(self, options)?;
        let bytes = graph.to_bytes(&options.metadata);
        Ok(OnnxModel { bytes, nodes: graph.len(), opset: options.opset() })
    }
}
