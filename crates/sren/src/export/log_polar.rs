//! The log-polar branch: a CNN that is circular in angle. Ours.

use sren_math::Grid;

use super::convolution::plain;
use super::graph::{Graph, Value};
use super::heads::{apply, hidden};
use super::pose::border_mean;
use super::protobuf::Attribute;
use super::simconv::{Features, Folded};
use crate::error::Result;
use crate::models::{CircularGrids, ConvLayer, Harmonics, LogPolar};
use crate::pose::Equivariance;

/// Scores `[n, orientations, classes]`, one row in a group without rotation.
pub(super) fn scores(
    g: &mut Graph,
    branch: &LogPolar,
    images: &Features,
    group: Equivariance,
) -> Result<Value> {
    let mut x = g.scope("sampling", |g| sampled(g, branch, images, group));
    let mut size = [branch.grid.angles, branch.grid.radii];
    for (index, layer) in branch.backbone.iter().enumerate() {
        (x, size) = g.scope(&format!("layer{}", index + 1), |g| circular(g, layer, &x, size))?;
    }
    let orders = branch.orders();
    let rows = 1 + 2 * orders.len();
    // [n, c, angles, radii] -> [n, angles, radii c]
    let x = g.transpose(&x, &[0, 2, 3, 1]);
    let x = g.reshape(&x, &[0, size[0] as i64, -1]);
    let basis = LogPolar::fourier_basis(size[0], &orders);
    let basis = g.floats("basis", &[rows, size[0]], &basis);
    // [rows, angles] x [n, angles, radii c]
    let all = g.matmul(&basis, &x);
    let mean = g.slice(&all, 1, 0, 1);
    let mean = g.reshape(&mean, &[-1, branch.pooled.weight.dims()[0] as i64]);
    let moments = g.slice(&all, 1, 1, rows);
    let harmonics = Harmonics { orders: &orders, orientations: branch.orientations };
    let harmonics = (harmonics, harmonics.rows(group));
    let hidden = hidden(g, harmonics, [&branch.pooled, &branch.moments], [&mean, &moments]);
    Ok(g.scope("linear", |g| apply(g, &branch.linear, &hidden)))
}

/// Images `[n, c, h, w]` in log-polar coordinates: `[n, c, angles, radii]`.
fn sampled(g: &mut Graph, branch: &LogPolar, images: &Features, group: Equivariance) -> Value {
    let Grid { height, width, .. } = images.grid;
    let pixels = height * width;
    let level = border_mean(g, &images.values, [height, width]);
    let relative = g.sub(&images.values, &level);
    let weight = g.unary("Abs", &relative);
    let weight = g.reduce("ReduceSum", &weight, &[1], false);
    let weight = g.reshape(&weight, &[0, pixels as i64]);
    let sum = g.reduce("ReduceSum", &weight, &[1], true);
    let sum = g.max(&sum, f32::MIN_POSITIVE);
    let mean = |g: &mut Graph, value: &Value| {
        let weighted = g.mul(&weight, value);
        let total = g.reduce("ReduceSum", &weighted, &[1], true);
        g.div(&total, &sum)
    };
    let centre = [width, height].map(|size| 0.5 * (size as f32 - 1.0));
    let along = [0, 1].map(|axis| {
        let along = |at: usize| [at % width, at / width][axis] as f32 - centre[axis];
        g.floats(["x", "y"][axis], &[1, pixels], &(0..pixels).map(along).collect::<Vec<f32>>())
    });
    let [x, y] = along.each_ref().map(|along| mean(g, along));
    let extent = if group.includes_scale() {
        let [u, v] = [(&along[0], &x), (&along[1], &y)].map(|(along, middle)| {
            let away = g.sub(along, middle);
            g.mul(&away, &away)
        });
        let square = g.add(&u, &v);
        let square = mean(g, &square);
        let extent = g.unary("Sqrt", &square);
        g.max(&extent, LogPolar::MIN_EXTENT)
    } else {
        let zero = g.mul(&x, 0.0);
        g.add(&zero, branch.grid.extent as f32)
    };
    // Pixel p, from the middle, lies at 2 p / size.
    let unit = [2.0 / width as f32, 2.0 / height as f32];
    let points = branch.grid.points();
    let taps = points.len();
    let circle = points.iter().flat_map(|[x, y]| [x * unit[0], y * unit[1]]);
    let along = [[unit[0], 0.0], [0.0, unit[1]]];
    let along = along.iter().flat_map(|step| step.iter().cycle().take(2 * taps).copied());
    let rows: Vec<f32> = circle.chain(along).collect();
    let rows = g.floats("circle", &[3, 2 * taps], &rows);
    let terms = g.concat(&[&extent, &x, &y], 1);
    // [n, 3] x [3, 2 angles radii]
    let taps = g.matmul(&terms, &rows);
    let [angles, radii] = [branch.grid.angles, branch.grid.radii].map(|size| size as i64);
    let taps = g.reshape(&taps, &[-1, angles, radii, 2]);
    let attributes = [
        ("mode", Attribute::Text("bilinear")),
        ("padding_mode", Attribute::Text("zeros")),
        ("align_corners", Attribute::Int(0)),
    ];
    g.op("GridSample", &[&relative, &taps], &attributes)
}

/// A layer on `[n, c, angles, radii]`, circular in angle.
fn circular(
    g: &mut Graph,
    layer: &ConvLayer,
    x: &Value,
    [angles, radii]: [usize; 2],
) -> Result<(Value, [usize; 2])> {
    let CircularGrids { margin, padded, output } = CircularGrids::new(layer, [angles, radii])?;
    let mut x = x.clone();
    if margin > 0 {
        let last = g.slice(&x, 2, angles - margin, angles);
        let first = g.slice(&x, 2, 0, margin);
        x = g.concat(&[&last, &x, &first], 2);
    }
    let kernel = Folded::new(&layer.conv, Some(&layer.norm)).kernel(g, 1);
    let x = plain(g, &x, &kernel, [&padded, &output]);
    Ok((g.unary("Relu", &x), [output.height, output.width]))
}
