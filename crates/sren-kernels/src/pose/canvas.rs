//! The image in the layout of the correlation kernels: luminance minus the mean of the border, sorted
//! by column phase, with zero padding.

use sren_math::{border_mean, element_count, luminance};

use crate::error::{KernelError, Result};

/// Smallest and largest image side.
const SIDES: std::ops::RangeInclusive<usize> = 8..=2048;

/// Positions of a row that are processed together.
pub(super) const LANES: usize = 32;

/// One value per position of a row.
pub(super) type Row = [f32; LANES];

/// A borrowed batch of images `[batch, height, width, channels]`.
///
/// ```
/// use sren_kernels::pose::Images;
///
/// let pixels = vec![0.5; 2 * 8 * 8 * 3];
/// assert!(Images::new(&pixels, 2, 8, 8, 3).is_ok());
/// assert!(Images::new(&pixels, 2, 8, 8, 1).is_err());
/// ```
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
        let expected = element_count(OPERATION, &[batch, height, width, channels])?;
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

/// The layout of canvases of one size: luminance `[height, stride, columns]`, column x at phase
/// `(x + pad) % stride`, index `(x + pad) / stride`, with zeros on both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    stride: usize,
    columns: usize,
    pad: usize,
}

impl Layout {
    /// The layout for kernels that reach up to `reach` pixels beyond the image.
    pub(super) fn new(images: &Images, stride: usize, reach: usize) -> Self {
        let columns = (images.width + 2 * reach).div_ceil(stride) + LANES;
        Self { stride, columns, pad: reach }
    }

    /// The index of the pixel `dy` rows down in column `x >= -pad`, relative to the start of a row.
    pub(super) fn start(&self, dy: i32, x: i32) -> isize {
        let padded = (x + self.pad as i32) as usize;
        let line = dy as isize * self.stride as isize + (padded % self.stride) as isize;
        line * self.columns as isize + (padded / self.stride) as isize
    }
}

/// The luminance of one image minus the mean of its border.
pub(super) struct Canvas {
    values: Vec<f32>,
    layout: Layout,
}

/// An index outside any canvas, far from overflow.
pub(super) const NOWHERE: isize = isize::MAX / 2;

/// Pixels outside the image.
const BLANK: Row = [0.0; LANES];

impl Canvas {
    /// Image `index` of the batch.
    pub(super) fn new(images: &Images, index: usize, layout: Layout) -> Self {
        let pixels = images.height * images.width * images.channels;
        let grey = luminance(&images.data[index * pixels..][..pixels], images.channels);
        let level = border_mean(&grey, images.height, images.width) as f32;
        let Layout { stride, columns, pad } = layout;
        let mut values = vec![0.0; images.height * stride * columns];
        for (y, line) in grey.chunks_exact(images.width).enumerate() {
            for (x, v) in line.iter().enumerate() {
                let padded = x + pad;
                values[(y * stride + padded % stride) * columns + padded / stride] = v - level;
            }
        }
        Self { values, layout }
    }

    /// The index of the start of row `y`.
    pub(super) fn row_start(&self, y: isize) -> isize {
        y * (self.layout.stride * self.layout.columns) as isize
    }

    /// The values from index `start` on; blank above and below the image.
    #[inline(always)]
    pub(super) fn row(&self, start: isize) -> &Row {
        self.values.get(start as usize..).and_then(|row| row.first_chunk()).unwrap_or(&BLANK)
    }
}
