//! `sren pose`: the local frames of one image.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use sren::{Image, PoseEstimatorConfig};
use sren_data::{Mnist, Split, read_image};
use sren_lab::{PoseFigures, PosePicture, atomic_write};

use crate::Failure;
use crate::output::{print, print_json};

/// Draw the local frames of an image: one arrow per position, its length by scale, its direction by
/// angle, its opacity by confidence.
#[derive(Debug, Args)]
pub(crate) struct Pose {
    /// A png or jpeg file, or mnist:N for digit N of the bundled test set
    image: String,
    /// File of the picture [default: pose.png]
    #[arg(short, long, value_name = "OUT.png")]
    output: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    image: &'a str,
    #[serde(flatten)]
    figures: PoseFigures,
}

impl Pose {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let estimator = PoseEstimatorConfig::new().init()?;
        let picture = PosePicture::new(&estimator, load(&self.image)?)
            .map_err(|e| format!("{}: {e}", self.image))?;
        let output = match &self.output {
            None if self.json => None,
            None => Some(Path::new("pose.png")),
            Some(path) => Some(path.as_path()),
        };
        if let Some(path) = output {
            atomic_write(path, &picture.png()?)?;
        }
        let figures = picture.figures();
        if self.json {
            return print_json(&Report { image: &self.image, figures });
        }
        let scales = figures.scale.as_ref().map_or("no position has a pose".into(), |s| {
            format!("median scale {:.1} px (10 % to 90 %: {:.1} to {:.1})", s.median, s.p10, s.p90)
        });
        print(&format!(
            "{}: {} x {} pixels, {:.0} % of {} positions have a pose, {scales}",
            self.image,
            figures.height,
            figures.width,
            100.0 * figures.share,
            figures.positions,
        ))?;
        output.map_or(Ok(()), |path| print(&format!("picture: {}", path.display())))
    }
}

/// The image named on the command line.
pub(super) fn load(name: &str) -> Result<Image, Failure> {
    let Some(index) = name.strip_prefix("mnist:") else {
        return Ok(read_image(Path::new(name))?);
    };
    let digits = Mnist::load(Split::Test)?;
    let digit = index.parse().ok().and_then(|i| digits.image(i)).ok_or_else(|| {
        format!("{name}: expected mnist:0 to mnist:{}, got mnist:{index}", digits.len() - 1)
    })?;
    // On the canvas of the paper's test sets.
    Ok(digit.padded(2 * digit.height(), 2 * digit.width())?)
}
