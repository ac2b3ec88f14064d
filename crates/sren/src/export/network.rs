//! A whole network: input, parts, outputs.

use burn::module::Module;
use sren_kernels::pose::Images;
use sren_math::Grid;

use super::canonical::{Views, combine};
use super::frames::Frames;
use super::graph::{Graph, Value};
use super::heads::{Scores, scores};
use super::protobuf::Dimension;
use super::simconv::Features;
use super::{Layout, OnnxOptions, Output, log_polar, patches, residual};
use crate::error::{Error, Result};
use crate::models::{AnyBackbone, Backbone, Classifier, Network};

/// The open number of images.
const BATCH: Dimension = Dimension::Name("n");

/// The graph of `network`.
pub(super) fn graph(network: &Network, options: &OnnxOptions) -> Result<Graph> {
    // Running averages lag behind until a module is read for validation.
    let network = network.valid();
    let classifier = network.classifier();
    let mut g = Graph::new(options.opset());
    let images = input(&mut g, classifier.image_channels, options);
    let (found, logits) = match &network {
        Network::Single(classifier) => {
            let found = classify(&mut g, classifier, &images, options)?;
            let logits = g.scope("marginal", |g| found.scores.marginalise(g));
            (found, logits)
        }
        Network::Canonicalised(pair) => {
            let found = classify(&mut g, classifier, &images, options)?;
            let first = g.scope("marginal", |g| found.scores.marginalise(g));
            let views =
                g.scope("orientations", |g| Views::likeliest(g, &found.scores, pair.rotations));
            let upright = g.scope("upright", |g| views.rotated(g, &images));
            let second = g.scope("branch", |g| -> Result<Value> {
                let branch = classify(g, &pair.branch, &upright, options)?;
                let logits = branch.scores.marginalise(g);
                Ok(views.mean(g, &logits, branch.scores.classes))
            })?;
            let logits = g.scope("mixture", |g| combine(g, pair, [&first, &second]));
            (found, logits)
        }
    };
    for output in &options.outputs {
        let sizes = |sizes: &[usize]| -> Vec<Dimension> {
            let sizes = sizes.iter().map(|size| Dimension::Size(*size));
            std::iter::once(BATCH).chain(sizes).collect()
        };
        let (value, shape) = match output {
            Output::Logits => (logits.clone(), sizes(&[found.scores.classes])),
            Output::Probabilities => (g.softmax(&logits, 1), sizes(&[found.scores.classes])),
            Output::Poses => {
                let Some(estimate) = &found.poses else {
                    return Err(Error::shape("export", "a network with poses", "a plain CNN"));
                };
                let Grid { height, width, .. } = found.finest;
                let poses = g.scope("poses", |g| g.concat(&estimate.each_ref(), 1));
                (poses, sizes(&[4, height, width]))
            }
            Output::Features => {
                let Features { values, channels, grid } = &found.features;
                (values.clone(), sizes(&[*channels, grid.height, grid.width]))
            }
        };
        g.output(output.name(), &value, &shape);
    }
    Ok(g)
}

/// The input, as the network sees it.
fn input(g: &mut Graph, channels: usize, options: &OnnxOptions) -> Features {
    let [height, width] = options.size;
    let [rows, columns] = match &options.preprocessing {
        None => [Dimension::Size(height), Dimension::Size(width)],
        Some(_) => [Dimension::Name("height"), Dimension::Name("width")],
    };
    let channel = Dimension::Size(channels);
    let mut values = match options.layout {
        Layout::Nchw => g.input("images", &[BATCH, channel, rows, columns]),
        Layout::Nhwc => {
            let images = g.input("images", &[BATCH, rows, columns, channel]);
            g.scope("layout", |g| g.transpose(&images, &[0, 3, 1, 2]))
        }
    };
    if let Some(preprocessing) = &options.preprocessing {
        values = g.scope("preprocessing", |g| preprocessing.apply(g, &values, options.size));
    }
    Features { values, channels, grid: Grid::pixels(height, width) }
}

/// What a classifier finds in images.
struct Found {
    scores: Scores,
    features: Features,
    /// Scale, cosine, sine and confidence on the finest grid.
    poses: Option<[Value; 4]>,
    finest: Grid,
}

fn classify(
    g: &mut Graph,
    classifier: &Classifier,
    images: &Features,
    options: &OnnxOptions,
) -> Result<Found> {
    let grids = classifier.backbone.grids(&images.grid)?;
    let mut frames = if classifier.is_plain() {
        Frames::plain()
    } else {
        g.scope("pose", |g| {
            Frames::estimated(g, &classifier.poses, classifier.equivariance, images)
        })?
    };
    for grid in &grids {
        let name = match grids.len() {
            1 => "pose".to_string(),
            _ => format!("pose.step{}", grid.step),
        };
        g.scope(&name, |g| frames.field(g, grid))?;
    }
    let features = match &classifier.backbone {
        AnyBackbone::Residual(network) => {
            residual::backbone(g, network, images, &mut frames, options.taps)?
        }
        AnyBackbone::Patches(encoder) => patches::backbone(g, encoder, images, &mut frames)?,
    };
    let mut scores = g.scope("head", |g| scores(g, &classifier.head, &features, &mut frames))?;
    if let Some(branch) = &classifier.log_polar {
        let group = classifier.equivariance;
        let whole = g.scope("log_polar", |g| log_polar::scores(g, branch, images, group))?;
        scores.values = g.add(&scores.values, &whole);
    }
    let poses = frames.field(g, &grids[0])?.estimate.clone();
    Ok(Found { scores, features, poses, finest: grids[0] })
}

/// Returns an error if poses cannot be read from images of this size.
pub(super) fn check_size(Grid { height, width, .. }: &Grid) -> Result<()> {
    // The estimator's own check, on a row that is as long as it may be and no longer.
    let pixels = height.checked_mul(*width).filter(|pixels| *pixels <= 1 << 24).unwrap_or(0);
    Images::new(&vec![0.0; pixels], 1, *height, *width, 1)?;
    Ok(())
}
