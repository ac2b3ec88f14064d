//! What is done to images before the network sees them: letterbox, bytes, padding, mask.

use super::graph::{Graph, Operand, Value};
use super::protobuf::ElementType;

/// How images of any size become what a network sees. All images of a batch have one size.
#[derive(Debug, Clone)]
pub struct InputPreprocessing {
    /// Side of the square that images are brought to; their aspect ratio is preserved.
    pub side: usize,
    /// Whether the bars beside an image that is not square have its mean colour; otherwise black.
    pub mean_colour: bool,
    /// A mask of the square, `[side, side]`, 0 to 1: outside it, and on the canvas around it, is the
    /// mean colour under it. None: the square is on black.
    pub mask: Option<Vec<f32>>,
}

impl InputPreprocessing {
    /// `[n, c, any, any]` -> `[n, c, h, w]`
    pub(super) fn apply(&self, g: &mut Graph, images: &Value, canvas: [usize; 2]) -> Value {
        let square = g.scope("letterbox", |g| self.letterbox(g, images));
        let square = g.scope("bytes", |g| {
            let square = g.clip(&square, 0.0, 1.0);
            let scaled = g.mul(&square, 255.0);
            let scaled = g.add(&scaled, 0.5);
            let bytes = g.unary("Floor", &scaled);
            g.div(&bytes, 255.0)
        });
        let Some(mask) = &self.mask else {
            return g.scope("padding", |g| self.padded(g, &square, canvas));
        };
        g.scope("mask", |g| {
            let sum = mask.iter().sum::<f32>().max(f32::MIN_POSITIVE);
            let mask = g.floats("mask", &[1, 1, self.side, self.side], mask);
            let seen = g.mul(&square, &mask);
            let total = g.reduce("ReduceSum", &seen, &[2, 3], true);
            let mean = g.div(&total, sum);
            let relative = g.sub(&square, &mean);
            let relative = g.mul(&relative, &mask);
            let padded = self.padded(g, &relative, canvas);
            let padded = g.add(&padded, &mean);
            g.clip(&padded, 0.0, 1.0)
        })
    }

    /// The square in the middle of the canvas, zeros around it.
    fn padded(&self, g: &mut Graph, square: &Value, [height, width]: [usize; 2]) -> Value {
        let before = [height, width].map(|size| (size.saturating_sub(self.side)) / 2);
        let after = [height - self.side - before[0], width - self.side - before[1]];
        let [[top, left], [bottom, right]] = [before, after].map(|pads| pads.map(|pad| pad as i64));
        let pads = g.list(&[0, 0, top, left, 0, 0, bottom, right]);
        g.op("Pad", &[square, &pads], &[])
    }

    /// The longer side becomes `side`, the rest of the square a bar.
    fn letterbox(&self, g: &mut Graph, images: &Value) -> Value {
        let side = self.side as f32;
        let shape = g.unary("Shape", images);
        let old = g.slice(&shape, 0, 2, 4);
        let old = g.cast(&old, ElementType::F32);
        let longer = g.reduce("ReduceMax", &old, &[0], true);
        // round(own side / longer), at least 1
        let new = g.mul(&old, side);
        let new = g.div(&new, &longer);
        let new = g.add(&new, 0.5);
        let new = g.unary("Floor", &new);
        let new = g.clip(&new, 1.0, side);
        let [down, across] = [0, 1].map(|axis| {
            let name = ["rows", "columns"][axis];
            g.scope(name, |g| {
                let [old, new] = [&old, &new].map(|sizes| g.slice(sizes, 0, axis, axis + 1));
                resizing(g, &old, &new)
            })
        });
        // [h', h] x [n, c, h, w] x [w, w']
        let small = g.matmul(&down, images);
        let across = g.transpose(&across, &[1, 0]);
        let small = g.matmul(&small, &across);
        // The smaller half of a bar is before the image.
        let new = g.cast(&new, ElementType::I64);
        let bars = g.sub(self.side as i64, &new);
        let before = g.div(&bars, 2i64);
        let after = g.sub(&bars, &before);
        let zeros = g.list(&[0, 0]);
        let pads = g.concat(&[&zeros, &before, &zeros, &after], 0);
        let square = match self.mean_colour {
            false => g.op("Pad", &[&small, &pads], &[]),
            true => {
                let mean = g.reduce("ReduceMean", &small, &[2, 3], true);
                let relative = g.sub(&small, &mean);
                let relative = g.op("Pad", &[&relative, &pads], &[]);
                g.add(&relative, &mean)
            }
        };
        // Known to be so: what follows has a fixed shape.
        g.reshape(&square, &[0, 0, self.side as i64, self.side as i64])
    }
}

/// Bilinear resizing of one axis as a matrix `[new, old]`, from sizes `[1]`: a tent around the centre of
/// each new pixel, as wide as a pixel of the coarser of the two. The operator `Resize` has this only
/// where it enlarges; where it reduces, engines differ.
fn resizing(g: &mut Graph, old: &Value, new: &Value) -> Value {
    let [old_index, new_index] = [old, new].map(|size| {
        let end = g.reshape(size, &[]);
        let (start, step) = (0.0.value(g), 1.0.value(g));
        g.op("Range", &[&start, &end, &step], &[])
    });
    // (i + 1/2) old / new - 1/2, integers as long as they can be
    let twice = g.mul(&new_index, 2.0);
    let odd = g.add(&twice, 1.0);
    let centre = g.mul(&odd, old);
    let doubled = g.mul(new, 2.0);
    let centre = g.div(&centre, &doubled);
    let centre = g.sub(&centre, 0.5);
    let centre = g.reshape(&centre, &[-1, 1]);
    let distance = g.sub(&old_index, &centre);
    let distance = g.unary("Abs", &distance);
    let width = g.div(old, new);
    let width = g.max(&width, 1.0);
    let distance = g.div(&distance, &width);
    let tent = g.sub(1.0, &distance);
    let tent = g.unary("Relu", &tent);
    let sum = g.reduce("ReduceSum", &tent, &[1], true);
    g.div(&tent, &sum)
}
