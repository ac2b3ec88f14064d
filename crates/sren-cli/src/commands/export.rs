//! `sren export`: a trained network as one ONNX file.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use sren::export::{Layout, OnnxModel, Output, Taps};
use sren_lab::inference::{ExportOptions, Model, OnnxCheck, check_onnx};
use sren_lab::{LabError, atomic_write, grouped};

use crate::Failure;
use crate::output::{print, print_json};

/// Write a trained network as one ONNX file of standard operators, poses included.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network
    run: PathBuf,
    /// The file
    #[arg(short, long, value_name = "FILE", default_value = "model.onnx")]
    output: PathBuf,
    /// Side of the images that the network sees, in pixels [default: as in training]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "with_preprocessing")]
    size: Option<u16>,
    /// How similarity convolutions sample: grid (GridSample, opset 17) or deform (DeformConv, opset 19)
    #[arg(long, value_name = "HOW", default_value = "grid", value_parser = parsed::<Taps>)]
    taps: Taps,
    /// The order of the input's axes: nchw or nhwc
    #[arg(long, value_name = "ORDER", default_value = "nchw", value_parser = parsed::<Layout>)]
    layout: Layout,
    /// What the graph gives: logits, probabilities, poses (of the finest grid), features (the last map)
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "logits,probabilities",
        value_parser = parsed::<Output>
    )]
    outputs: Vec<Output>,
    /// Letterbox, padding and mask inside the graph, for images of any size
    #[arg(long)]
    with_preprocessing: bool,
    /// Run the file with another engine (rten) and compare; nothing is written if they differ
    #[arg(long)]
    check: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

fn parsed<T: FromStr<Err = sren::Error>>(name: &str) -> Result<T, String> {
    name.parse().map_err(|error: sren::Error| error.to_string())
}

#[derive(Serialize)]
struct Report<'a> {
    file: &'a Path,
    bytes: usize,
    nodes: usize,
    opset: i64,
    outputs: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<OnnxCheck>,
}

impl Export {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let model = Model::open(&self.run)?;
        let options = self.options();
        let file = model.export_onnx(&options)?;
        let check = match self.check {
            true => Some(self.checked(&model, &file, &options)?),
            false => None,
        };
        atomic_write(&self.output, &file.bytes)?;
        self.show(&file, check)
    }

    fn options(&self) -> ExportOptions {
        let mut options = ExportOptions::default();
        options.size = self.size.map(usize::from);
        (options.taps, options.layout) = (self.taps, self.layout);
        options.set_outputs(&self.outputs);
        options.with_preprocessing = self.with_preprocessing;
        options
    }

    fn checked(
        &self,
        model: &Model,
        file: &OnnxModel,
        options: &ExportOptions,
    ) -> Result<OnnxCheck, LabError> {
        let check = check_onnx(model, file, options)?;
        if check.passed() {
            return Ok(check);
        }
        let expected = format!("a file that gives in {} what the network gives", check.engine);
        let got = format!(
            "probabilities that differ by {:.1e}, {} of {} classes equal",
            check.probability_difference, check.equal_classes, check.images
        );
        Err(LabError::invalid(self.output.display().to_string(), expected, got))
    }

    fn show(&self, file: &OnnxModel, check: Option<OnnxCheck>) -> Result<(), Failure> {
        if self.json {
            return print_json(&Report {
                file: &self.output,
                bytes: file.bytes.len(),
                nodes: file.nodes,
                opset: file.opset,
                outputs: self.options().outputs.iter().map(|output| output.name()).collect(),
                check,
            });
        }
        print(&format!(
            "{}: {} bytes, {} nodes, opset {}",
            self.output.display(),
            grouped(file.bytes.len()),
            file.nodes,
            file.opset
        ))?;
        let Some(check) = check else { return Ok(()) };
        print(&format!(
            "checked with {} on {} images: probabilities within {:.1e}, logits within {:.1e}, \
             {} of {} classes equal",
            check.engine,
            check.images,
            check.probability_difference,
            check.logit_difference,
            check.equal_classes,
            check.images
        ))?;
        if check.ambiguous == 0 {
            return Ok(());
        }
        print(&format!(
            "{} more have two equally probable orientations, of which an engine may take either",
            check.ambiguous
        ))
    }
}
