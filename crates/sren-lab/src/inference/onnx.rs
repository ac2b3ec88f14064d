//! A trained model as one ONNX file.

use serde::Serialize;
use sren::Weights;
use sren::export::{InputPreprocessing, Layout, OnnxModel, OnnxOptions, Output, Taps};
use sren_data::circular_mask;

use super::model::Model;
use super::preprocessing::Preprocessing;
use crate::error::{LabError, Result};
use crate::training::checksum::checksum;

/// How a model is exported.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Side of the images that the network sees; none: as in training.
    pub size: Option<usize>,
    /// The order of the axes of the input.
    pub layout: Layout,
    /// How similarity convolutions sample their input.
    pub taps: Taps,
    /// What the graph gives.
    pub outputs: Vec<Output>,
    /// Whether the graph takes images of any size and does the preprocessing itself.
    pub with_preprocessing: bool,
}

impl Default for ExportOptions {
    /// `[n, c, h, w]` in, logits and probabilities out.
    fn default() -> Self {
        Self {
            size: None,
            layout: Layout::Nchw,
            taps: Taps::Grid,
            outputs: vec![Output::Logits, Output::Probabilities],
            with_preprocessing: false,
        }
    }
}

impl ExportOptions {
    /// What the graph gives, each once.
    pub fn set_outputs(&mut self, outputs: &[Output]) {
        self.outputs.clear();
        for output in outputs {
            if !self.outputs.contains(output) {
                self.outputs.push(*output);
            }
        }
    }
}

/// What `sren predict` does to an image, as the metadata of a file say it.
#[derive(Serialize)]
struct PreprocessingText {
    /// Whether the graph does it.
    in_graph: bool,
    /// The longer side of an image becomes `side`; bars make it a square.
    side: usize,
    bars: &'static str,
    /// Then values are rounded to 1 / 255.
    values: &'static str,
    /// Then the square has a circular mask, or none,
    circular_mask: bool,
    /// and is in the middle of a canvas.
    canvas: [usize; 2],
}

impl Model {
    /// The model as an ONNX file, with the names of its classes and its preprocessing in the metadata.
    ///
    /// ```
    /// use std::path::Path;
    /// use sren_lab::inference::{BUNDLED, ExportOptions, Model};
    ///
    /// let model = Model::open(Path::new(BUNDLED))?;
    /// let file = model.export_onnx(&ExportOptions::default())?;
    /// println!("{} nodes, {} bytes", file.nodes, file.bytes.len());
    /// # Ok::<(), sren_lab::LabError>(())
    /// ```
    pub fn export_onnx(&self, options: &ExportOptions) -> Result<OnnxModel> {
        let preprocessing = self.config.preprocessing();
        let canvas = preprocessing.padding.canvas;
        let size = options.size.map_or(canvas, |side| [side; 2]);
        if options.with_preprocessing && size != canvas {
            let expected =
                format!("{} x {}, with preprocessing in the graph", canvas[0], canvas[1]);
            return Err(LabError::invalid("size", expected, format!("{} x {}", size[0], size[1])));
        }
        let network = self.config.network()?;
        network.geometry(size)?;
        let mut graph = OnnxOptions::new(size);
        (graph.layout, graph.taps) = (options.layout, options.taps);
        graph.outputs = options.outputs.clone();
        graph.preprocessing = options.with_preprocessing.then(|| in_graph(&preprocessing));
        graph.metadata = self.metadata(options, &preprocessing)?;
        Ok(self.network.to_onnx(&graph)?)
    }

    fn metadata(
        &self,
        options: &ExportOptions,
        preprocessing: &Preprocessing,
    ) -> Result<Vec<(String, String)>> {
        let json = |text: serde_json::Result<String>| {
            text.map_err(|e| LabError::invalid("metadata", "JSON", e.to_string()))
        };
        let Preprocessing { letterbox, padding } = preprocessing;
        let text = PreprocessingText {
            in_graph: options.with_preprocessing,
            side: letterbox.side,
            bars: if letterbox.mean_colour { "mean colour" } else { "black" },
            values: "rounded to 1/255",
            circular_mask: padding.circular_mask,
            canvas: padding.canvas,
        };
        let layout = match options.layout {
            Layout::Nchw => "[n, c, h, w], f32, 0 to 1",
            Layout::Nhwc => "[n, h, w, c], f32, 0 to 1",
        };
        let entries = [
            ("input", layout.to_string()),
            ("classes", json(serde_json::to_string(&self.config.classes()))?),
            ("preprocessing", json(serde_json::to_string(&text))?),
            ("architecture", self.config.arch.clone()),
            ("equivariance", self.network.equivariance().name().to_string()),
            ("sren_version", env!("CARGO_PKG_VERSION").to_string()),
            ("weights_crc32", format!("{:08x}", checksum(&Weights::of(&self.network)))),
        ];
        Ok(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }
}

/// Preprocessing as a part of the graph.
fn in_graph(Preprocessing { letterbox, padding }: &Preprocessing) -> InputPreprocessing {
    InputPreprocessing {
        side: letterbox.side,
        mean_colour: letterbox.mean_colour,
        mask: padding.circular_mask.then(|| circular_mask(letterbox.side, letterbox.side)),
    }
}
