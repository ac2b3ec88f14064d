//! A small drawing surface: an enlarged image with antialiased strokes on it.

use image::{ImageFormat, Rgb, RgbImage};
use sren::Image;

use crate::error::{LabError, Result};

/// A colour, 0..1 per channel.
pub(crate) type Colour = [f32; 3];

/// A picture that is drawn on.
#[derive(Debug, Clone)]
pub(crate) struct Canvas {
    pixels: Vec<Colour>,
    height: usize,
    width: usize,
}

impl Canvas {
    /// The image with every pixel a square of `zoom x zoom`, grey as grey, its values mapped
    /// to `range` so that strokes stand out.
    pub(crate) fn enlarge(image: &Image, zoom: usize, range: [f32; 2]) -> Self {
        let (height, width, channels) = (image.height(), image.width(), image.channels());
        let pixel = |i: usize| {
            let (y, x) = (i / (width * zoom) / zoom, i % (width * zoom) / zoom);
            let source = &image.data()[(y * width + x) * channels..][..channels];
            let at = |c: usize| if channels >= 3 { source[c] } else { source[0] };
            [at(0), at(1), at(2)].map(|v| range[0] + (range[1] - range[0]) * v.clamp(0.0, 1.0))
        };
        let pixels = (0..height * width * zoom * zoom).map(pixel).collect();
        Self { pixels, height: height * zoom, width: width * zoom }
    }

    /// A picture of one colour.
    pub(crate) fn blank(height: usize, width: usize, colour: Colour) -> Self {
        Self { pixels: vec![colour; height * width], height, width }
    }

    /// Fills the square of `size x size` with its corner at (x, y) with what `colour` gives for
    /// the place in it, both axes 0..1. Pixels outside of the picture are left out.
    pub(crate) fn fill(
        &mut self,
        [x, y]: [usize; 2],
        size: usize,
        colour: impl Fn([f64; 2]) -> Colour,
    ) {
        let place = |i: usize| (i as f64 + 0.5) / size as f64;
        for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
            if y + row < self.height && x + column < self.width {
                self.pixels[(y + row) * self.width + x + column] =
                    colour([place(column), place(row)]);
            }
        }
    }

    /// Puts another picture in, its corner at (x, y).
    pub(crate) fn paste(&mut self, [x, y]: [usize; 2], other: &Self) {
        for (row, line) in other.pixels.chunks_exact(other.width).enumerate() {
            let start = (y + row) * self.width + x;
            self.pixels[start..start + other.width].copy_from_slice(line);
        }
    }

    /// Mixes a colour into the pixel at (x, y) by its opacity. Pixels outside of the picture are
    /// left out.
    pub(crate) fn blend(&mut self, [x, y]: [i64; 2], colour: Colour, opacity: f32) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x < self.width && y < self.height {
            for (p, c) in self.pixels[y * self.width + x].iter_mut().zip(colour) {
                *p += opacity * (c - *p);
            }
        }
    }

    /// A straight stroke with round ends from `a` to `b` (x, y), `thickness` pixels wide.
    pub(crate) fn stroke(
        &mut self,
        a: [f32; 2],
        b: [f32; 2],
        thickness: f32,
        colour: Colour,
        opacity: f32,
    ) {
        let reach = 0.5 * thickness + 1.0;
        let span = |a: f32, b: f32, size: usize| {
            let first = (a.min(b) - reach).floor().max(0.0) as usize;
            let last = (a.max(b) + reach).ceil().max(0.0) as usize;
            first..(last + 1).min(size)
        };
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let length2 = (dx * dx + dy * dy).max(1e-12);
        for y in span(a[1], b[1], self.height) {
            for x in span(a[0], b[0], self.width) {
                let (u, v) = (x as f32 - a[0], y as f32 - a[1]);
                let along = ((u * dx + v * dy) / length2).clamp(0.0, 1.0);
                let distance = (u - along * dx).hypot(v - along * dy);
                let cover = (0.5 * thickness + 0.5 - distance).clamp(0.0, 1.0) * opacity;
                self.blend([x as i64, y as i64], colour, cover);
            }
        }
    }

    /// An arrow from `a` to `b`.
    pub(crate) fn arrow(
        &mut self,
        a: [f32; 2],
        b: [f32; 2],
        thickness: f32,
        colour: Colour,
        opacity: f32,
    ) {
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let length = dx.hypot(dy).max(1e-6);
        let head = (0.35 * length).clamp(2.0, 4.0 * thickness + 2.0) / length;
        self.stroke(a, b, thickness, colour, opacity);
        for side in [0.5, -0.5] {
            let barb = [b[0] - head * (dx + side * dy), b[1] - head * (dy - side * dx)];
            self.stroke(b, barb, thickness, colour, opacity);
        }
    }

    /// The picture as a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let byte = |v: f32| (v.clamp(0.0, 1.0) * 255.0).round() as u8;
        let picture = RgbImage::from_fn(self.width as u32, self.height as u32, |x, y| {
            Rgb(self.pixels[y as usize * self.width + x as usize].map(byte))
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Png).map_err(|e| {
            LabError::invalid("PNG", "a picture that can be encoded", e.to_string())
        })?;
        Ok(bytes.into_inner())
    }
}
