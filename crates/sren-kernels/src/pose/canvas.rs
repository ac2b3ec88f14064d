//! The image as the correlation kernels read it: luminance, above the level of its border, sorted by
//! column phase, zeros around.

use sren_math::{border_mean, luminance};

use crate::error::{KernelError, Result};

/// Smallest and largest image side that is read.
const SIDES: std::ops::RangeInclusive<usize> = 8..=2048;

/// Positions of a row that are worked on at once.
pub(super) const LANES: usize = 32;

/// One value a position of a row.
pub(super) type Row = [f32; LANES];

/// A batch of images `[batch, height, width, channels]` in memory.
#[derive(Debug, Clone, Copy)]
pub struct Images<'a> {
    pub(super) data: &'a [f32],
    pub(super) batch: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl<'a> Images<'a> {
    /// A batch from its values: sides of 8 to 2048 pixels, at least 1 channel, finite values.
    pub fn new(
        data: &'a [f32],
        batch: usize,
        height: usize,
        width: usize,
        channels: usize,
    ) -> Result<Self> {
        const OPERATION: &str = "Images";
        let shape = format!("[{batch}, {height}, {width}, {channels}]");
        if !(SIDES.contains(&height) && SIDES.contains(&width) && channels > 0) {
            let expected = format!(
                "[batch, height, width, channels] with sides of {} to {} pixels",
                SIDES.start(),
                SIDES.end()
            );
            return Err(KernelError::invalid(OPERATION, expected, shape));
        }
        let expected = batch * height * width * channels;
        if data.len() != expected {
            return Err(KernelError::invalid(
                OPERATION,
                format!("{expected} values for {shape}"),
                format!("{}", data.len()),
            ));
        }
        if let Some(at) = data.iter().position(|v| !v.is_finite()) {
            let pixel = at / channels;
            return Err(KernelError::invalid(
                OPERATION,
                "finite pixels",
                format!(
                    "{} in image {}, row {}, column {}",
                    data[at],
                    pixel / (height * width),
                    pixel / width % height,
                    pixel % width
                ),
            ));
        }
        Ok(Self { data, batch, height, width, channels })
    }
}

/// One image as luminance `[height, stride, columns]`: column x is at phase `(x + pad) % stride`,
/// place `(x + pad) / stride`; the padding on both sides is zero.
pub(super) struct Canvas {
    values: Vec<f32>,
    stride: usize,
    columns: usize,
    pad: usize,
}

impl Canvas {
    /// Image `index` of the batch, padded so that a row of places from any pixel of a kernel within
    /// `reach` pixels of the image can be read.
    pub(super) fn new(images: &Images, index: usize, stride: usize, reach: usize) -> Self {
        let pixels = images.height * images.width * images.channels;
        let grey = luminance(&images.data[index * pixels..][..pixels], images.channels);
        let level = border_mean(&grey, images.height, images.width) as f32;
        let columns = (images.width + 2 * reach).div_ceil(stride) + LANES;
        let mut values = vec![0.0; images.height * stride * columns];
        for (y, line) in grey.chunks_exact(images.width).enumerate() {
            for (x, v) in line.iter().enumerate() {
                let padded = x + reach;
                values[(y * stride + padded % stride) * columns + padded / stride] = v - level;
            }
        }
        Self { values, stride, columns, pad: reach }
    }

    /// The places of row `y`, every `stride`-th pixel from column `x >= -pad`.
    #[inline(always)]
    pub(super) fn row(&self, y: usize, x: i32) -> &Row {
        let padded = (x + self.pad as i32) as usize;
        let start = (y * self.stride + padded % self.stride) * self.columns + padded / self.stride;
        self.values[start..].first_chunk().expect("padded by a row beyond the reach")
    }
}
