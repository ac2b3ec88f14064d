//! What is done to images before the network sees them: letterbox, bytes, padding, mask.

use super::graph::{Graph, Value};
use super::protobuf::{Attribute, ElementType};

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
        let size = g.slice(&shape, 0, 2, 4);
        let size = g.cast(&size, ElementType::F32);
        let longer = g.reduce("ReduceMax", &size, &[0], true);
        // round(own side / longer), at least 1
        let scaled = g.mul(&size, side);
        let scaled = g.div(&scaled, &longer);
        let scaled = g.add(&scaled, 0.5);
        let scaled = g.unary("Floor", &scaled);
        let scaled = g.clip(&scaled, 1.0, side);
        let size = g.cast(&scaled, ElementType::I64);
        let none = Value::none();
        let attributes = [
            ("antialias", Attribute::Int(1)),
            ("axes", Attribute::Ints(vec![2, 3])),
            ("mode", Attribute::Text("linear")),
        ];
        let small = g.op("Resize", &[images, &none, &none, &size], &attributes);
        // The smaller half of a bar is before the image.
        let bars = g.sub(self.side as i64, &size);
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
        let size = g.list(&[0, 0, self.side as i64, self.side as i64]);
        // Known to be so: what follows has a fixed shape.
        g.op("Reshape", &[&square, &size], &[])
    }
}
