//! `sren pose`: the local frames of one image.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use sren::PoseEstimatorConfig;
use sren_data::{CANVAS, NamedImage, ReducedImage, resize};
use sren_lab::{PoseFigures, PosePicture, atomic_write};

use crate::Failure;
use crate::output::{print, print_json};

/// Draw the local frames of an image: one arrow per position, its length by scale, its direction by
/// angle, its opacity by confidence.
#[derive(Debug, Args)]
pub(crate) struct Pose {
    /// An image file (png, jpeg, webp, bmp, gif, tiff), or mnist:N for digit N of the bundled test set
    image: String,
    /// Larger images are reduced to this many pixels along their longer side; results are in pixels
    /// of the file
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(8..=2048))]
    size: u16,
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
        let output = match &self.output {
            None if self.json => None,
            None => Some(Path::new("pose.png")),
            Some(path) => Some(path.as_path()),
        };
        if output.is_some_and(|output| is_same_file(output, Path::new(&self.image))) {
            let name = &self.image;
            return Err(
                format!("{name}: expected another file for the picture, got the image").into()
            );
        }
        let ReducedImage { image, size, .. } = load(&self.image, self.size.into())?;
        let picture = PosePicture::new(&estimator, image)
            .map_err(|e| format!("{}: {e}", self.image))?
            .reduced_from(size);
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

/// Whether both paths lead to one file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// The image named on the command line, its longer side at most `size` pixels; a digit on the canvas
/// of the paper's test sets.
pub(super) fn load(name: &str, size: usize) -> Result<ReducedImage, Failure> {
    let [named] = &NamedImage::parse(name)?[..] else {
        return Err(format!("{name}: expected one image, got several").into());
    };
    let mut read = named.read(size)?;
    if let NamedImage::Digit(_) = named {
        read.image = read.image.padded(CANVAS, CANVAS)?;
        read.size = [CANVAS; 2];
        return Ok(read);
    }
    let longer = read.image.height().max(read.image.width());
    if longer > size {
        let part = size as f64 / longer as f64;
        let side = |side: usize| ((side as f64 * part).round() as usize).max(1);
        read.image = resize(&read.image, side(read.image.height()), side(read.image.width()))?;
    }
    Ok(read)
}
