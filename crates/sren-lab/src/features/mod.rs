//! The compensating view: features of transformed images, transformed back. Where they are
//! equivariant they look the same in every column.

mod colour_map;
mod fine;

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use sren::equivariance::{NamedFeatures, network_layers};
use sren::models::{Network, NetworkConfig};
use sren::{Equivariance, FeatureMap, Image, Similarity};
use sren_data::in_channels;

use crate::canvas::{Canvas, Colour};
use crate::error::{LabError, Result};
use crate::inference::inference_device;
use crate::lettering;
use crate::pose_picture::PosePicture;

pub(crate) use colour_map::{ColourMap, Palette};
pub(crate) use fine::fine_network;

/// Scales and angles (degrees) of the columns.
const COLUMNS: [(f64, f64); 6] =
    [(1.0, 0.0), (1.0, 45.0), (1.0, 120.0), (0.75, 0.0), (1.35, 0.0), (1.25, 200.0)];
/// Side of a cell, between cells, and room for labels, in pixels.
const CELL: usize = 144;
const GAP: usize = 6;
const LABEL: usize = 118;
const HEAD: usize = 34;
const FOOT: usize = 36;
/// Height of a line of text, in pixels.
const TEXT: f32 = 20.0;
/// The middle part of the frame that inputs are shown of: the image at its largest.
const INPUTS: f64 = 0.8;
/// Arrows along a cell.
const ARROWS: usize = 14;
const PAPER: Colour = [0.07, 0.08, 0.1];
const INK: Colour = [0.93, 0.94, 0.95];
const SOFT: Colour = [0.62, 0.66, 0.71];

/// A network to visualise.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What stands beside its rows.
    pub title: &'a str,
    /// The network, which does not train.
    pub network: &'a Network,
    /// What it was made by.
    pub config: &'a NetworkConfig,
    /// Where its weights come from, for the line below the picture.
    pub weights: &'a str,
}

/// The picture (PNG): one column per transform; the inputs that `view` gives for it, of one size, the
/// frames of the first equivariant network, then for each of `layers` one row per network.
/// Without names, the first and the last layer.
pub fn feature_picture(
    view: impl Fn(&Similarity) -> Result<Image>,
    networks: &[Shown],
    layers: &[String],
) -> Result<Vec<u8>> {
    let transforms: Vec<Similarity> = COLUMNS
        .iter()
        .map(|(scale, degrees)| Similarity::new(*scale, degrees.to_radians(), [0.0; 2]))
        .collect::<Result<_, _>>()?;
    let views: Vec<Image> = transforms.iter().map(view).collect::<Result<_>>()?;
    let layers = chosen(networks, &views, layers)?;
    let maps: Vec<Vec<Vec<ColourMap>>> =
        networks.iter().map(|shown| shown_maps(shown, &views, &layers)).collect::<Result<_>>()?;
    let following =
        networks.iter().find(|shown| shown.network.equivariance() != Equivariance::None);

    let rows = 1 + usize::from(following.is_some()) + layers.len() * networks.len();
    let (width, height) = (LABEL + COLUMNS.len() * (CELL + GAP), HEAD + rows * (CELL + GAP));
    let mut canvas = Canvas::blank(height + FOOT, width, PAPER);
    let caption = caption(networks);
    lettering::write(&mut canvas, &caption, [10, height + 6], TEXT, SOFT);
    for (column, (scale, degrees)) in COLUMNS.iter().enumerate() {
        let name = match (*scale, *degrees) {
            (1.0, 0.0) => "original".into(),
            (1.0, degrees) => format!("{degrees}°"),
            (scale, 0.0) => format!("× {scale}"),
            (scale, degrees) => format!("{degrees}°, × {scale}"),
        };
        let x = corner(0, column)[0] + (CELL - lettering::width(&name, TEXT).min(CELL)) / 2;
        lettering::write(&mut canvas, &name, [x, 8], TEXT, INK);
    }
    label(&mut canvas, 0, ["input", ""]);
    for (column, view) in views.iter().enumerate() {
        canvas.fill(corner(0, column), CELL, |place| pixel(view, place, [0.0, 1.0]));
    }
    let mut row = 1;
    if let Some(shown) = following {
        label(&mut canvas, row, ["frames", ""]);
        let estimator = shown.config.pose.init()?;
        for (column, view) in views.iter().enumerate() {
            let mut cell = Canvas::blank(CELL, CELL, PAPER);
            cell.fill([0, 0], CELL, |place| pixel(view, place, [0.1, 0.6]));
            let zoom = CELL as f64 / (INPUTS * view.width() as f64);
            let hidden = -0.5 * (1.0 - INPUTS) * zoom;
            let left_out = [view.width(), view.height()].map(|side| hidden * side as f64);
            PosePicture::with_arrows(&estimator, view.clone(), ARROWS)?
                .draw(&mut cell, left_out, zoom);
            canvas.paste(corner(row, column), &cell);
        }
        row += 1;
    }
    for (layer, name) in layers.iter().enumerate() {
        for (shown, maps) in networks.iter().zip(&maps) {
            label(&mut canvas, row, [shown.title, name]);
            for (column, (transform, maps)) in transforms.iter().zip(maps).enumerate() {
                let size = [views[0].width(), views[0].height()];
                canvas.fill(corner(row, column), CELL, |place| {
                    maps[layer].transformed_back(transform, size, place)
                });
            }
            row += 1;
        }
    }
    canvas.png()
}

/// The line below the picture.
fn caption(networks: &[Shown]) -> String {
    let weights = networks.iter().map(|shown| format!("{}: {}", shown.title, shown.weights));
    let weights: Vec<String> = weights.collect();
    format!("Features are transformed back. {}.", weights.join("; "))
}

fn corner(row: usize, column: usize) -> [usize; 2] {
    [LABEL + column * (CELL + GAP), HEAD + row * (CELL + GAP)]
}

fn label(canvas: &mut Canvas, row: usize, lines: [&str; 2]) {
    let y = HEAD + row * (CELL + GAP) + CELL / 2 - 16;
    lettering::write(canvas, lines[0], [10, y], TEXT, INK);
    lettering::write(canvas, lines[1], [10, y + 22], TEXT, SOFT);
}

/// The maps of `layers` for each view. The colours are those of the first.
fn shown_maps(shown: &Shown, views: &[Image], layers: &[String]) -> Result<Vec<Vec<ColourMap>>> {
    let mut palettes: Vec<Palette> = Vec::new();
    let mut maps = Vec::new();
    for view in views {
        let longer = view.width().max(view.height());
        let network = fine_network(shown.network, shown.config, longer)?;
        let mut found: BTreeMap<String, FeatureMap> =
            features(shown, &network, view)?.into_iter().collect();
        let mut of_view = Vec::new();
        for (index, name) in layers.iter().enumerate() {
            let Some(FeatureMap { values, grid }) = found.remove(name) else {
                return Err(LabError::invalid("layer", name.as_str(), "a network without it"));
            };
            let [.., channels] = values.dims();
            let values: Vec<f32> = values.into_data().iter::<f32>().collect();
            if palettes.len() == index {
                palettes.push(Palette::of(&values, channels));
            }
            of_view.push(ColourMap::new(grid, &values, channels, &palettes[index]));
        }
        maps.push(of_view);
    }
    Ok(maps)
}

fn features(shown: &Shown, network: &Network, view: &Image) -> Result<Vec<NamedFeatures>> {
    let view = in_channels(view, shown.config.image_channels)?;
    let shape = [1, view.height(), view.width(), view.channels()];
    let data = TensorData::new(view.data().to_vec(), shape);
    Ok(network_layers(network, Tensor::from_data(data, &inference_device()))?)
}

/// The layers named, or the first and the last.
fn chosen(networks: &[Shown], views: &[Image], names: &[String]) -> Result<Vec<String>> {
    let (Some(shown), Some(view)) = (networks.first(), views.first()) else {
        return Ok(Vec::new());
    };
    let known = features(shown, shown.network, view)?.into_iter().map(|(name, _)| name);
    let known: Vec<String> = known.collect();
    if names.is_empty() {
        let mut ends = vec![known[0].clone(), known[known.len() - 1].clone()];
        ends.dedup();
        return Ok(ends);
    }
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(names.to_vec()),
        Some(name) => {
            let expected = format!("one of {}", known.join(", "));
            Err(LabError::invalid("layer", expected, name.as_str()))
        }
    }
}

/// A pixel of the middle of an image, its values brought to `range`.
fn pixel(image: &Image, place: [f64; 2], range: [f32; 2]) -> Colour {
    let place = place.map(|p| 0.5 + INPUTS * (p - 0.5));
    let at = |part: f64, size: usize| ((part * size as f64) as usize).min(size - 1);
    let (x, y) = (at(place[0], image.width()), at(place[1], image.height()));
    let channels = image.channels();
    let values = &image.data()[(y * image.width() + x) * channels..][..channels];
    let of = |channel: usize| values[if channels >= 3 { channel } else { 0 }].clamp(0.0, 1.0);
    [0, 1, 2].map(|channel| range[0] + (range[1] - range[0]) * of(channel))
}
