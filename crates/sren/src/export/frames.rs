//! The local frames of a batch, as the parts of a network share them: pose fields by grid, and the
//! sampling locations of layers that have the same.

use std::rc::Rc;

use sren_math::Grid;

use super::Taps;
use super::graph::{Graph, Value};
use super::network::check_size;
use super::pose::{self, Field, Pose};
use super::protobuf::Attribute;
use super::simconv::Features;
use crate::error::Result;
use crate::pose::{Equivariance, PoseEstimator, TapLayout};

/// The frames of images.
pub(super) struct Frames<'a> {
    group: Equivariance,
    /// What poses are read from and the pixels it has; none for a plain CNN.
    source: Option<(&'a PoseEstimator, Value, Grid)>,
    fields: Vec<(Grid, Rc<Field>)>,
    taps: Vec<(TapsKey, Value)>,
}

/// Input grid, output grid, layout, number of the pose and form.
type TapsKey = ([Grid; 2], TapLayout, usize, Taps);

impl<'a> Frames<'a> {
    /// The frames of a plain CNN: every pose is the identity.
    pub(super) fn plain() -> Self {
        let (fields, taps) = (Vec::new(), Vec::new());
        Self { group: Equivariance::None, source: None, fields, taps }
    }

    /// Frames that `estimator` reads from `images`, restricted to `group`. Returns an error if they are
    /// too small or too large for it.
    pub(super) fn estimated(
        g: &mut Graph,
        estimator: &'a PoseEstimator,
        group: Equivariance,
        images: &Features,
    ) -> Result<Self> {
        check_size(&images.grid)?;
        let canvas = pose::canvas(g, &images.values, images.channels, &images.grid);
        Ok(Self { group, source: Some((estimator, canvas, images.grid)), ..Self::plain() })
    }

    /// The equivariance group.
    pub(super) fn group(&self) -> Equivariance {
        self.group
    }

    /// The pose field on `grid`; its nodes are added when it is first asked for.
    pub(super) fn field(&mut self, g: &mut Graph, grid: &Grid) -> Result<Rc<Field>> {
        if let Some((_, field)) = self.fields.iter().find(|(known, _)| known == grid) {
            return Ok(field.clone());
        }
        let mut field = match &self.source {
            None => Field { gate: None, poses: vec![Pose::default()], estimate: None },
            Some((estimator, canvas, pixels)) => {
                pose::field(g, estimator.spec(), canvas, [pixels, grid])?
            }
        };
        for pose in &mut field.poses {
            pose.scale = pose.scale.take().filter(|_| self.group.includes_scale());
            pose.direction = pose.direction.take().filter(|_| self.group.includes_rotation());
        }
        // Equal poses need no weights.
        if self.group == Equivariance::None {
            field.poses = vec![Pose::default()];
        }
        let field = Rc::new(field);
        self.fields.push((*grid, field.clone()));
        Ok(field)
    }

    /// `x` `[n, c, h, w]` on `grid`, multiplied by the gate.
    pub(super) fn gated(&mut self, g: &mut Graph, x: &Value, grid: &Grid) -> Result<Value> {
        Ok(match &self.field(g, grid)?.gate {
            None => x.clone(),
            Some(gate) => g.mul(x, gate),
        })
    }

    /// The samples of `x` `[n, c, h, w]` on the first grid at the taps of every position of the
    /// second, in its pose number `pose`: `[n, c, positions, taps]`.
    pub(super) fn sample(
        &mut self,
        g: &mut Graph,
        x: &Value,
        grids: [&Grid; 2],
        layout: TapLayout,
        pose: usize,
    ) -> Result<Value> {
        let group = self.group;
        let taps = self.shared(g, grids, (layout, pose), Taps::Grid, |g, layout, pose| {
            locations(g, x, grids, layout, pose, group)
        })?;
        let attributes = [
            ("mode", Attribute::Text("bilinear")),
            ("padding_mode", Attribute::Text("zeros")),
            ("align_corners", Attribute::Int(0)),
        ];
        Ok(g.op("GridSample", &[x, &taps], &attributes))
    }

    /// How far the taps of every position, in its best pose, are from those of the plain convolution
    /// at the same stride, for `DeformConv`: `[n, 2 taps, h, w]`.
    pub(super) fn offsets(
        &mut self,
        g: &mut Graph,
        grids: [&Grid; 2],
        layout: TapLayout,
    ) -> Result<Value> {
        let group = self.group;
        self.shared(g, grids, (layout, 0), Taps::Deform, |g, layout, pose| {
            offsets(g, grids, layout, pose, group)
        })
    }

    /// What `build` makes for a pose of the second grid, once for all layers that need the same.
    fn shared(
        &mut self,
        g: &mut Graph,
        grids: [&Grid; 2],
        (layout, pose): (TapLayout, usize),
        how: Taps,
        build: impl FnOnce(&mut Graph, TapLayout, &Pose) -> Value,
    ) -> Result<Value> {
        // Locations depend on neither.
        let layout = TapLayout { relative_pose: false, gated_input: false, ..layout };
        let key = (grids.map(|grid| *grid), layout, pose, how);
        if let Some((_, taps)) = self.taps.iter().find(|(known, _)| *known == key) {
            return Ok(taps.clone());
        }
        let field = self.field(g, grids[1])?;
        let taps = g.scope("taps", |g| build(g, layout, &field.poses[pose]));
        self.taps.push((key, taps.clone()));
        Ok(taps)
    }
}

/// The taps t of a square kernel around its centre, as (x, y), row by row.
fn kernel_taps(side: usize) -> impl Iterator<Item = [f64; 2]> {
    let centred = move |index: usize| index as f64 - (side / 2) as f64;
    (0..side * side).map(move |tap| [centred(tap % side), centred(tap / side)])
}

/// `[cos, sin] spacing`, each `[n, 1, h, w]`; a number where the pose does not have it.
enum TapVector {
    /// Upright, all the same.
    Fixed(f32),
    /// Upright, with the local scale.
    Upright(Value),
    /// In local frames.
    Local([Value; 2]),
}

impl TapVector {
    fn new(g: &mut Graph, pose: &Pose, layout: TapLayout, group: Equivariance) -> Self {
        let kappa = layout.kappa(group);
        let spacing = pose.scale.as_ref().map(|scale| g.mul(scale, kappa));
        match (&pose.direction, spacing) {
            (None, None) => Self::Fixed(kappa),
            (None, Some(spacing)) => Self::Upright(spacing),
            (Some(direction), spacing) => {
                Self::Local(direction.each_ref().map(|part| match &spacing {
                    Some(spacing) => g.mul(part, spacing),
                    None => g.mul(part, kappa),
                }))
            }
        }
    }
}

/// The locations of all taps for `GridSample`, `[n, positions, taps, 2]`: -1 to 1 along the input.
fn locations(
    g: &mut Graph,
    x: &Value,
    [input, output]: [&Grid; 2],
    layout: TapLayout,
    pose: &Pose,
    group: Equivariance,
) -> Value {
    let side = layout.kernel_size;
    let (positions, taps) = (output.len(), side * side);
    // Index i lies at (2 i + 1) / size - 1.
    let unit = [2.0 / input.width as f64, 2.0 / input.height as f64];
    let row = |of: &dyn Fn([f64; 2]) -> [f64; 2]| -> Vec<f32> {
        kernel_taps(side).flat_map(of).map(|value| value as f32).collect()
    };
    let along = row(&|[x, y]| [x * unit[0], y * unit[1]]);
    let across = row(&|[x, y]| [-y * unit[0], x * unit[1]]);
    let centre = |at: usize| {
        let point = output.point(at / output.width, at % output.width);
        [0, 1].map(|axis| {
            let index = (point[axis] - input.origin[axis]) / input.step;
            ((index + 0.5) * unit[axis] - 1.0) as f32
        })
    };
    let centres: Vec<f32> = (0..positions).flat_map(centre).collect();
    let (vector, rows) = match TapVector::new(g, pose, layout, group) {
        TapVector::Fixed(spacing) => {
            let all = centres.chunks_exact(2).flat_map(|centre| {
                let taps = along.chunks_exact(2);
                taps.flat_map(|tap| [0, 1].map(|axis| centre[axis] + spacing * tap[axis]))
            });
            let all: Vec<f32> = all.collect();
            let all = g.floats("all", &[1, positions, taps, 2], &all);
            let batch = g.batch(x);
            let rest = g.list(&[1, 1, 1]);
            let shape = g.concat(&[&batch, &rest], 0);
            return g.op("Expand", &[&all, &shape], &[]);
        }
        TapVector::Upright(spacing) => (vec![spacing], vec![along]),
        TapVector::Local(vector) => (vector.to_vec(), vec![along, across]),
    };
    // One product of the tap vector and the centre with what each tap takes of them: broadcasting
    // along an axis of size 2 would take many times as long.
    let vector: Vec<Value> =
        vector.iter().map(|part| g.reshape(part, &[0, positions as i64, 1])).collect();
    let centres = g.floats("centres", &[1, positions, 2], &centres);
    let zero = g.mul(&vector[0], 0.0);
    let centres = g.add(&centres, &zero);
    let terms: Vec<&Value> = vector.iter().chain([&centres]).collect();
    let terms = g.concat(&terms, 2);
    let rows = rows.into_iter().chain([row(&|_| [1.0, 0.0]), row(&|_| [0.0, 1.0])]);
    let rows: Vec<f32> = rows.flatten().collect();
    let rows = g.floats("taps", &[rows.len() / (2 * taps), 2 * taps], &rows);
    // [n, positions, terms] x [terms, 2 taps]
    let all = g.matmul(&terms, &rows);
    g.reshape(&all, &[0, positions as i64, taps as i64, 2])
}

/// How far the taps are from those of the plain convolution, `[n, 2 taps, h, w]`: rows, columns.
fn offsets(
    g: &mut Graph,
    [input, output]: [&Grid; 2],
    layout: TapLayout,
    pose: &Pose,
    group: Equivariance,
) -> Value {
    let side = layout.kernel_size;
    let shape = [1, 2 * side * side, 1, 1];
    let first = [1, 0].map(|axis| (output.origin[axis] - input.origin[axis]) / input.step);
    let list = |of: &dyn Fn([f64; 2]) -> [f64; 2]| -> Vec<f32> {
        kernel_taps(side).flat_map(of).map(|value| value as f32).collect()
    };
    let fixed = g.floats("fixed", &shape, &list(&|[x, y]| [first[0] - y, first[1] - x]));
    let along = g.floats("along", &shape, &list(&|[x, y]| [y, x]));
    let moved = match TapVector::new(g, pose, layout, group) {
        TapVector::Fixed(spacing) => g.mul(&along, spacing),
        TapVector::Upright(spacing) => g.mul(&spacing, &along),
        TapVector::Local([cos, sin]) => {
            let across = g.floats("across", &shape, &list(&|[x, y]| [x, -y]));
            let (along, across) = (g.mul(&cos, &along), g.mul(&sin, &across));
            g.add(&along, &across)
        }
    };
    g.add(&moved, &fixed)
}
