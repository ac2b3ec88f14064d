//! Matrix products of the similarity convolution, on the calling thread, with checked operands.

use std::ops::Range;

use super::kernel::{Base, COLUMNS, Strip, multiply_strip, takes_two_strips};
use super::positions::Positions;
use crate::simd::LineBuffer;

/// A matrix in rows of `columns` values, `pitch` values apart, and the rows selected for a product.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    values: &'a [f32],
    rows: usize,
    selected: Positions<'a>,
    columns: usize,
    pitch: usize,
}

/// A matrix to write, laid out as [`Rows`].
pub(super) struct RowsMut<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
    pitch: usize,
}

/// Number of values from the first of `rows` rows of `columns` values, `pitch` values apart, to the
/// last.
fn extent(rows: usize, columns: usize, pitch: usize) -> usize {
    assert!(columns <= pitch, "columns {columns} within a pitch of {pitch}");
    rows.checked_sub(1).map_or(0, |last| span(last, pitch, columns))
}

/// `index * pitch + width`; panics if it does not fit.
fn span(index: usize, pitch: usize, width: usize) -> usize {
    index.checked_mul(pitch).and_then(|start| start.checked_add(width)).expect("size of a matrix")
}

/// `depth * columns`; panics if it does not fit.
fn area(depth: usize, columns: usize) -> usize {
    span(depth, columns, 0)
}

impl<'a> Rows<'a> {
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize, pitch: usize) -> Self {
        assert!(values.len() >= extent(rows, columns, pitch), "values of a matrix");
        Self { values, rows, selected: Positions::Range(0, rows), columns, pitch }
    }

    /// Adds the sum of all rows to `sums` `[columns]`.
    pub(super) fn add_sum(&self, sums: &mut [f32]) {
        assert_eq!(sums.len(), self.columns, "sums of columns");
        // As many as fit into registers.
        const WIDE: usize = 2 * COLUMNS;
        let mut done = 0;
        while done < self.columns {
            let sums = &mut sums[done..];
            done += match sums.len() {
                WIDE.. => self.add_sum_of::<WIDE>(done, sums),
                COLUMNS.. => self.add_sum_of::<COLUMNS>(done, sums),
                _ => self.add_sum_of::<1>(done, sums),
            };
        }
    }

    /// Adds the sum of `N` columns from `first` on to the first of `sums`. Returns `N`.
    fn add_sum_of<const N: usize>(&self, first: usize, sums: &mut [f32]) -> usize {
        let mut sum = [0.0; N];
        for row in self.values[first..].chunks(self.pitch).take(self.rows) {
            let row = row.first_chunk::<N>().expect("columns of a row");
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        sums.iter_mut().zip(sum).for_each(|(sums, sum)| *sums += sum);
        N
    }

    /// The same matrix with only the rows `selected`.
    pub(super) fn only(self, selected: Positions<'a>) -> Self {
        assert!(selected.are_below(self.rows), "selected rows of a matrix");
        Self { selected, ..self }
    }
}

impl<'a> RowsMut<'a> {
    pub(super) fn new(values: &'a mut [f32], rows: usize, columns: usize, pitch: usize) -> Self {
        assert!(values.len() >= extent(rows, columns, pitch), "values of a matrix");
        Self { values, rows, columns, pitch }
    }
}

/// A right-hand operand `[depth, columns]` in strips of 16 columns.
#[derive(Clone, Copy)]
pub(super) struct Strips<'a> {
    values: &'a [f32],
    depth: usize,
    columns: usize,
    /// Distance between rows of a strip, in values.
    row: usize,
    /// Distance between strips, in values.
    strip: usize,
}

/// Contiguous strips `[strip, depth, 16]`, zero-padded.
#[derive(Default)]
pub(super) struct Packed {
    buffer: LineBuffer,
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Packs the row-major `matrix` `[depth, columns]`.
    pub(super) fn new(matrix: &[f32], depth: usize, columns: usize) -> Self {
        let mut packed = Self::default();
        packed.fill(matrix, depth, columns);
        packed
    }

    /// The strips of the row-major `matrix` `[depth, columns]`, for a transposed product. They are not
    /// copied if they are whole, and there is one or the kernel reads two at a time. Reading one of
    /// several at a time is faster when packed.
    pub(super) fn strips_of<'a>(
        &'a mut self,
        matrix: &'a [f32],
        depth: usize,
        columns: usize,
    ) -> Strips<'a> {
        let whole = columns.is_multiple_of(COLUMNS);
        if !(whole && (columns == COLUMNS || takes_two_strips())) {
            self.fill(matrix, depth, columns);
            return self.strips();
        }
        assert_eq!(matrix.len(), area(depth, columns), "matrix to cut");
        Strips { values: matrix, depth, columns, row: columns, strip: COLUMNS }
    }

    /// The packed strips.
    pub(super) fn strips(&self) -> Strips<'_> {
        let (values, depth, columns) = (self.buffer.values(), self.depth, self.columns);
        Strips { values, depth, columns, row: COLUMNS, strip: depth * COLUMNS }
    }

    /// Packs another row-major `matrix` `[depth, columns]` into the same buffer.
    fn fill(&mut self, matrix: &[f32], depth: usize, columns: usize) {
        assert_eq!(matrix.len(), area(depth, columns), "matrix to pack");
        assert!(depth > 0 && columns > 0, "a matrix that is not empty");
        (self.depth, self.columns) = (depth, columns);
        let packed = self.buffer.take(area(area(columns.div_ceil(COLUMNS), depth), COLUMNS));
        for (strip, packed) in packed.chunks_exact_mut(depth * COLUMNS).enumerate() {
            let width = COLUMNS.min(columns - strip * COLUMNS);
            let rows = matrix.chunks_exact(columns);
            for (row, packed) in rows.zip(packed.chunks_exact_mut(COLUMNS)) {
                let row = &row[strip * COLUMNS..];
                match row.first_chunk::<COLUMNS>() {
                    Some(row) => packed.copy_from_slice(row),
                    None => {
                        packed[..width].copy_from_slice(row);
                        packed[width..].fill(0.0);
                    }
                }
            }
        }
    }

    /// Packs the transpose of the row-major `matrix` `[columns, depth]`.
    pub(super) fn transposed(matrix: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(matrix.len(), area(depth, columns), "matrix to pack");
        let mut buffer = LineBuffer::default();
        let packed = buffer.take(area(area(columns.div_ceil(COLUMNS), depth), COLUMNS));
        packed.fill(0.0);
        if columns > 0 && depth > 0 {
            for (column, row) in matrix.chunks_exact(depth).enumerate() {
                let strip = &mut packed[column / COLUMNS * depth * COLUMNS..][..depth * COLUMNS];
                let slots = strip.chunks_exact_mut(COLUMNS);
                for (target, value) in slots.zip(row) {
                    target[column % COLUMNS] = *value;
                }
            }
        }
        Self { buffer, depth, columns }
    }
}

impl<'a> Strips<'a> {
    /// The strips of some columns: whole strips, except the last of the matrix.
    pub(super) fn columns(self, columns: Range<usize>) -> Strips<'a> {
        assert!(columns.start.is_multiple_of(COLUMNS), "columns from the first of a strip on");
        let whole = columns.end.is_multiple_of(COLUMNS) && columns.end <= self.columns;
        assert!(whole || columns.end == self.columns, "columns to the end of a strip");
        let values = &self.values[columns.start / COLUMNS * self.strip..];
        Strips { values, columns: columns.len(), ..self }
    }
}

/// Depth of one pass over the blocks: such a strip stays in the first-level cache.
const DEPTH: usize = 256;

/// `out = base + left * right[first_row ..]`, with as many rows of `right` as `left` has columns. Rows
/// of `out` stay unchanged where those of `left` are not selected.
pub(super) fn multiply(out: &mut RowsMut, left: Rows, right: Strips, first_row: usize, base: Base) {
    assert_eq!((out.rows, out.columns), (left.rows, right.columns), "sizes of a product");
    let depth_left = right.depth.checked_sub(first_row);
    assert!(depth_left.is_some_and(|depth| left.columns <= depth), "depth of a product");
    for start in (0..left.columns).step_by(DEPTH) {
        let depth = DEPTH.min(left.columns - start);
        let values = left.values.get(start..).unwrap_or_default();
        let left = Rows { values, columns: depth, ..left };
        let first_row = first_row + start;
        let base = if start > 0 { Base::Product } else { base };
        strips_product(out, left, false, left.selected, right, first_row, base);
    }
}

/// `out += left^T * right`, where `left` is `[depth, out.rows]` and `right` `[depth, out.columns]`,
/// summed over the selected rows of `left`.
pub(super) fn add_transposed_product(out: &mut RowsMut, left: Rows, right: Strips) {
    assert_eq!((left.columns, left.rows), (out.rows, right.depth), "sizes of a product");
    assert_eq!(right.columns, out.columns, "columns of a product");
    strips_product(out, left, true, Positions::Range(0, out.rows), right, 0, Base::Product);
}

/// The first column of every pair of whole strips, or of one at the end, and the number of strips.
fn pairs_of_strips(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let strips = move |column: usize| if columns - column >= 2 * COLUMNS { 2 } else { 1 };
    let first = (columns > 0).then_some(0);
    let next = move |column: &usize| {
        Some(column + strips(*column) * COLUMNS).filter(|column| *column < columns)
    };
    std::iter::successors(first, next).map(move |column| (column, strips(column)))
}

/// `base + left * right[first_row ..]`, or with the transposed left operand, to the rows `to`.
fn strips_product(
    out: &mut RowsMut,
    left: Rows,
    transposed: bool,
    to: Positions,
    right: Strips,
    first_row: usize,
    base: Base,
) {
    let (Some(last_row), Some(last_to)) = (left.selected.last(), to.last()) else {
        return;
    };
    let last_step = if transposed { last_row } else { left.columns - 1 };
    assert!(left.values.len() >= span(last_row, left.pitch, left.columns), "left operand");
    assert!(last_to < out.rows, "rows of a product");
    assert!(transposed || right.row == COLUMNS, "packed right operand");
    for (column, strips) in pairs_of_strips(out.columns) {
        let b = &right.values[column / COLUMNS * right.strip + first_row * right.row..];
        let b_len = span(last_step, right.row, span(strips - 1, right.strip, COLUMNS));
        assert!(b.len() >= b_len, "right operand");
        let target = &mut out.values[column..];
        let strip = Strip {
            a: left.values.as_ptr(),
            a_row: left.pitch,
            rows: left.selected,
            columns: left.columns,
            transposed,
            b: b.as_ptr(),
            b_row: right.row,
            strips,
            b_strip: right.strip,
            c: target.as_mut_ptr(),
            c_row: out.pitch,
            to,
            base,
        };
        let width = (strips * COLUMNS).min(out.columns - column);
        if width == strips * COLUMNS {
            assert!(target.len() >= span(last_to, out.pitch, width), "product");
            // SAFETY: the checks above cover the last of the ascending rows and steps of both operands,
            // all strips, and the last row of the product, which is borrowed mutably and so overlaps
            // nothing.
            unsafe { multiply_strip(strip) };
            continue;
        }
        // The last, incomplete strip: whole strips of some rows go to a buffer first.
        const ROWS: usize = 24;
        let mut whole = [0.0; ROWS * COLUMNS];
        for first in (0..to.len()).step_by(ROWS) {
            let strip = strip.slice(first, to.len().min(first + ROWS));
            let rows = strip.to;
            let (c, to) = (whole.as_mut_ptr(), Positions::Range(0, rows.len()));
            // SAFETY: as above; the buffer has room for 24 rows of 16 columns.
            unsafe { multiply_strip(Strip { c, c_row: COLUMNS, to, base: Base::Zero, ..strip }) };
            for (r, sums) in whole.chunks_exact(COLUMNS).take(rows.len()).enumerate() {
                let row = &mut target[rows.get(r) * out.pitch..][..width];
                for (c, sum) in row.iter_mut().zip(sums) {
                    *c = if base == Base::Product { *c + sum } else { *sum };
                }
            }
        }
    }
}
