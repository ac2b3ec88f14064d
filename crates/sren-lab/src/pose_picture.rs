//! The pose field of one image: a picture with one arrow per position, and its figures.

use serde::Serialize;
use sren::pose::Images;
use sren::{Grid, Image, PoseEstimator, PoseField};

use crate::canvas::{Canvas, Colour};
use crate::error::Result;
use crate::lettering;

/// Arrows along the longer side, about.
const ARROWS: usize = 32;
/// Length of the longer side of the picture in pixels, about; small images are enlarged to it.
const PICTURE_SIDE: usize = 1024;
/// Height of the legend below it, and of its text.
const LEGEND: usize = 60;
const TEXT: f32 = 20.0;
const PAPER: Colour = [0.07, 0.08, 0.1];
const INK: Colour = [0.93, 0.94, 0.95];
/// Colours of small, middle and large scales.
const SMALL_TO_LARGE: [Colour; 3] = [[0.15, 0.85, 1.0], [1.0, 0.85, 0.1], [1.0, 0.25, 0.35]];

/// The local frames of one image, on a grid coarse enough to be drawn.
#[derive(Debug)]
pub struct PosePicture {
    image: Image,
    field: PoseField,
    size: [usize; 2],
}

/// 10th, 50th and 90th percentile of a set of values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// 10th percentile.
    pub p10: f32,
    /// 50th percentile.
    pub median: f32,
    /// 90th percentile.
    pub p90: f32,
}

/// One position of the field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PosedPoint {
    /// Column in the image, in pixels.
    pub x: f64,
    /// Row in the image, in pixels.
    pub y: f64,
    /// Scale in pixels.
    pub scale: f32,
    /// Angle in degrees, from the x axis towards the y axis (down).
    pub angle_deg: f32,
    /// Confidence, above 0.
    pub confidence: f32,
}

/// The figures of a pose field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PoseFigures {
    /// Height of the image in pixels.
    pub height: usize,
    /// Width of the image in pixels.
    pub width: usize,
    /// Distance of positions in pixels.
    pub step: f64,
    /// Number of positions.
    pub positions: usize,
    /// The share of them that has a pose.
    pub share: f64,
    /// Scales in pixels over the positions with a pose, if there are any.
    pub scale: Option<Spread>,
    /// Mean direction, weighted by confidence, in degrees.
    pub dominant_angle_deg: f64,
    /// Length of the mean direction: 0 for no common direction, 1 for one direction.
    pub coherence: f64,
    /// The positions that have a pose.
    pub poses: Vec<PosedPoint>,
}

impl PosePicture {
    /// Estimates the poses of an image.
    pub fn new(estimator: &PoseEstimator, image: Image) -> Result<Self> {
        Self::with_arrows(estimator, image, ARROWS)
    }

    /// The same with about `arrows` arrows along the longer side.
    pub(crate) fn with_arrows(
        estimator: &PoseEstimator,
        image: Image,
        arrows: usize,
    ) -> Result<Self> {
        let (height, width) = (image.height(), image.width());
        let images = Images::new(image.data(), 1, height, width, image.channels())
            .map_err(sren::Error::from)?;
        let stride = height.max(width).div_ceil(arrows).max(2);
        let grid = Grid::pixels(height, width).cell_centred(stride)?;
        let field = estimator.field(&images, &grid)?;
        Ok(Self { image, field, size: [height, width] })
    }

    /// The same for an image that was reduced from this height and width: figures are in pixels of
    /// the original.
    pub fn reduced_from(self, size: [usize; 2]) -> Self {
        Self { size, ..self }
    }

    /// The image with an arrow at every position: its direction is the angle (towards the brighter
    /// side), its length (logarithmic) and colour the scale, its opacity the confidence; below it a
    /// legend of the colours. PNG.
    pub fn png(&self) -> Result<Vec<u8>> {
        let side = self.image.height().max(self.image.width());
        let zoom = (PICTURE_SIDE / side).max(1);
        let mut picture = Canvas::enlarge(&self.image, zoom, [0.12, 0.62]);
        self.draw(&mut picture, [0.0; 2], zoom as f64);
        let (height, width) = (zoom * self.image.height(), zoom * self.image.width());
        let mut canvas = Canvas::blank(height + LEGEND, width, PAPER);
        canvas.paste([0, 0], &picture);
        self.draw_legend(&mut canvas, height, width);
        canvas.png()
    }

    /// Below the picture: which colour is which scale, in pixels of the file.
    fn draw_legend(&self, canvas: &mut Canvas, top: usize, width: usize) {
        let factor = self.size[1] as f32 / self.image.width() as f32;
        let (margin, text_top) = (12, top + 34);
        let title = "scale";
        let left = margin + lettering::width(title, TEXT) + margin;
        lettering::write(canvas, title, [margin, top + 8], TEXT, INK);
        let length = width.saturating_sub(left + margin);
        for column in 0..length {
            let scale = 16f32.powf(column as f32 / length as f32);
            let x = (left + column) as f32;
            let ends = [top as f32 + 12.0, top as f32 + 26.0];
            canvas.stroke([x, ends[0]], [x, ends[1]], 1.0, colour(scale), 1.0);
        }
        for (part, scale) in [(0.0, 1.0), (0.5, 4.0), (1.0, 16.0)] {
            let bound = [" or less", "", " or more"][(2.0 * part) as usize];
            let name = format!("{} px{bound}", (10.0 * scale * factor).round() / 10.0);
            let room = lettering::width(&name, TEXT).min(length);
            let x = left + (part * (length - room) as f64) as usize;
            lettering::write(canvas, &name, [x, text_top], TEXT, INK);
        }
    }

    /// Draws the arrows: the image's corner at `corner`, its pixels `zoom` times as large.
    pub(crate) fn draw(&self, canvas: &mut Canvas, corner: [f64; 2], zoom: f64) {
        let spacing = (self.field.grid().step * zoom) as f32;
        // Large frames first, so that small ones stay visible.
        let mut poses = self.poses();
        poses.sort_by(|a, b| b.scale.total_cmp(&a.scale));
        for pose in poses {
            let pixel = |axis: usize, v: f64| (corner[axis] + (v + 0.5) * zoom - 0.5) as f32;
            let at = [pixel(0, pose.x), pixel(1, pose.y)];
            let (sin, cos) = pose.angle_deg.to_radians().sin_cos();
            // Longer by the same amount for every doubling: large frames would hide the image.
            let length = spacing * (0.5 + 0.22 * pose.scale.log2()).max(0.3);
            let tip = [at[0] + length * cos, at[1] + length * sin];
            let thickness = (0.07 * spacing).clamp(1.2, 3.0);
            canvas.arrow(at, tip, thickness, colour(pose.scale), 0.15 + 0.85 * pose.confidence);
        }
    }

    /// The figures of the field.
    pub fn figures(&self) -> PoseFigures {
        let [height, width] = self.size;
        let [y_factor, x_factor] =
            [height as f64 / self.image.height() as f64, width as f64 / self.image.width() as f64];
        let original = |pose: PosedPoint| PosedPoint {
            x: x_factor * (pose.x + 0.5) - 0.5,
            y: y_factor * (pose.y + 0.5) - 0.5,
            scale: (x_factor * y_factor).sqrt() as f32 * pose.scale,
            ..pose
        };
        let poses: Vec<PosedPoint> = self.poses().into_iter().map(original).collect();
        let (mut x, mut y, mut total) = (0.0, 0.0, 0.0);
        for pose in &poses {
            let (sin, cos) = f64::from(pose.angle_deg).to_radians().sin_cos();
            x += f64::from(pose.confidence) * cos;
            y += f64::from(pose.confidence) * sin;
            total += f64::from(pose.confidence);
        }
        let grid = self.field.grid();
        PoseFigures {
            height,
            width,
            step: (x_factor * y_factor).sqrt() * grid.step,
            positions: grid.len(),
            share: poses.len() as f64 / grid.len() as f64,
            scale: Spread::of(poses.iter().map(|pose| pose.scale).collect()),
            dominant_angle_deg: y.atan2(x).to_degrees(),
            coherence: if total > 0.0 { x.hypot(y) / total } else { 0.0 },
            poses,
        }
    }

    fn poses(&self) -> Vec<PosedPoint> {
        let (field, grid) = (&self.field, self.field.grid());
        (0..grid.len())
            .filter(|at| field.confidence()[*at] > 0.0)
            .map(|at| {
                let [x, y] = grid.point(at / grid.width, at % grid.width);
                let best = at * field.poses();
                PosedPoint {
                    x,
                    y,
                    scale: field.scale()[best],
                    angle_deg: field.angle()[best].to_degrees(),
                    confidence: field.confidence()[at],
                }
            })
            .collect()
    }
}

impl Spread {
    fn of(mut values: Vec<f32>) -> Option<Self> {
        values.sort_by(f32::total_cmp);
        let at = |part: f64| values.get(((values.len() as f64 - 1.0) * part) as usize).copied();
        Some(Self { p10: at(0.1)?, median: at(0.5)?, p90: at(0.9)? })
    }
}

/// The colour of a scale in pixels: 1 and below, 4, 16 and above.
fn colour(scale: f32) -> Colour {
    let place = (scale.max(1.0).log2() / 2.0).clamp(0.0, 1.999);
    let [a, b] = [SMALL_TO_LARGE[place as usize], SMALL_TO_LARGE[place as usize + 1]];
    let t = place.fract();
    [0, 1, 2].map(|c| a[c] + t * (b[c] - a[c]))
}
