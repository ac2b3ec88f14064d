//! Matrix products of the similarity convolution, on the calling thread, checked at this border.

use super::kernel::{COLUMNS, Start, Strip, multiply_strip};
use crate::simd::LineBuffer;

/// A matrix in rows of `pitch` values, of which the first `columns` count.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    pitch: usize,
}

/// A matrix to write, like [`Rows`].
pub(super) struct RowsMut<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
    pitch: usize,
}

/// Values that `rows` rows of `columns` values at distance `pitch` take.
fn extent(rows: usize, columns: usize, pitch: usize) -> usize {
    assert!(columns <= pitch, "columns {columns} within a pitch of {pitch}");
    if rows == 0 { 0 } else { (rows - 1) * pitch + columns }
}

impl<'a> Rows<'a> {
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize, pitch: usize) -> Self {
        assert!(values.len() >= extent(rows, columns, pitch), "values of a matrix");
        Self { values, rows, columns, pitch }
    }
}

impl<'a> RowsMut<'a> {
    pub(super) fn new(values: &'a mut [f32], rows: usize, columns: usize, pitch: usize) -> Self {
        assert!(values.len() >= extent(rows, columns, pitch), "values of a matrix");
        Self { values, rows, columns, pitch }
    }
}

/// A right-hand operand `[depth, columns]` cut into strips of 16 columns, filled up with zeros.
/// Within a strip, the rows follow each other: `[strip, depth, 16]`.
#[derive(Clone, Copy)]
pub(super) struct Strips<'a> {
    values: &'a [f32],
    depth: usize,
    columns: usize,
}

/// The memory of [`Strips`].
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

    /// The strips of the row-major `matrix` `[depth, columns]`: itself, if it is one.
    pub(super) fn strips_of<'a>(
        &'a mut self,
        matrix: &'a [f32],
        depth: usize,
        columns: usize,
    ) -> Strips<'a> {
        if columns != COLUMNS {
            self.fill(matrix, depth, columns);
            return self.strips();
        }
        assert_eq!(matrix.len(), depth * columns, "matrix to pack");
        Strips { values: matrix, depth, columns }
    }

    /// The strips as they are.
    pub(super) fn strips(&self) -> Strips<'_> {
        Strips { values: self.buffer.values(), depth: self.depth, columns: self.columns }
    }

    /// Packs another row-major `matrix` `[depth, columns]` in the place of this.
    fn fill(&mut self, matrix: &[f32], depth: usize, columns: usize) {
        assert_eq!(matrix.len(), depth * columns, "matrix to pack");
        assert!(depth > 0 && columns > 0, "something to pack");
        (self.depth, self.columns) = (depth, columns);
        let packed = self.buffer.take(columns.div_ceil(COLUMNS) * depth * COLUMNS);
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
        assert_eq!(matrix.len(), depth * columns, "matrix to pack");
        let mut buffer = LineBuffer::default();
        let strips = columns.div_ceil(COLUMNS);
        let packed = buffer.take(strips * depth * COLUMNS);
        packed.fill(0.0);
        if columns > 0 && depth > 0 {
            for (column, row) in matrix.chunks_exact(depth).enumerate() {
                let strip = &mut packed[column / COLUMNS * depth * COLUMNS..][..depth * COLUMNS];
                let places = strip.chunks_exact_mut(COLUMNS);
                for (place, value) in places.zip(row) {
                    place[column % COLUMNS] = *value;
                }
            }
        }
        Self { buffer, depth, columns }
    }
}

impl Strips<'_> {
    /// Adds the sum of all rows to `sums` `[columns]`.
    pub(super) fn add_sum_of_rows(&self, sums: &mut [f32]) {
        assert_eq!(sums.len(), self.columns, "sums of columns");
        let strips = self.values.chunks_exact(self.depth * COLUMNS);
        for (sums, strip) in sums.chunks_mut(COLUMNS).zip(strips) {
            let mut sum = [0.0; COLUMNS];
            for row in strip.as_chunks::<COLUMNS>().0 {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            sums.iter_mut().zip(sum).for_each(|(sums, sum)| *sums += sum);
        }
    }
}

/// Depth that one pass over the blocks takes: a strip of it stays in the first-level cache.
const DEPTH: usize = 256;

/// What a product is added to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// Nothing.
    Zero,
    /// What is there.
    Product,
    /// One row in each row: as many values as columns, filled up to a multiple of 16.
    Row(&'a [f32]),
}

/// `out = base + left * right[first_row ..]`, of as many rows of `right` as `left` has columns.
pub(super) fn multiply(out: &mut RowsMut, left: Rows, right: Strips, first_row: usize, base: Base) {
    assert_eq!((out.rows, out.columns), (left.rows, right.columns), "sizes of a product");
    assert!(first_row + left.columns <= right.depth, "depth of a product");
    for start in (0..left.columns).step_by(DEPTH) {
        let depth = DEPTH.min(left.columns - start);
        for (column, strips) in pairs_of_strips(out.columns) {
            let strip = column / COLUMNS * right.depth;
            let operands = Operands {
                depth,
                a: left.values.get(start..).unwrap_or_default(),
                a_row: left.pitch,
                a_depth: 1,
                b: &right.values[(strip + first_row + start) * COLUMNS..],
                b_depth: COLUMNS,
                strips,
                b_strip: right.depth * COLUMNS,
            };
            strip_product(out, column, operands, if start > 0 { Base::Product } else { base });
        }
    }
}

/// `out += left^T * right`, where `left` is `[depth, out.rows]` and `right` `[depth, out.columns]`.
pub(super) fn add_transposed_product(out: &mut RowsMut, left: Rows, right: Strips) {
    assert_eq!((left.columns, left.rows), (out.rows, right.depth), "sizes of a product");
    assert_eq!(right.columns, out.columns, "columns of a product");
    for (column, strips) in pairs_of_strips(out.columns) {
        let operands = Operands {
            depth: left.rows,
            a: left.values,
            a_row: 1,
            a_depth: left.pitch,
            b: &right.values[column * right.depth..],
            b_depth: COLUMNS,
            strips,
            b_strip: right.depth * COLUMNS,
        };
        strip_product(out, column, operands, Base::Product);
    }
}

struct Operands<'a> {
    depth: usize,
    a: &'a [f32],
    a_row: usize,
    a_depth: usize,
    b: &'a [f32],
    b_depth: usize,
    strips: usize,
    b_strip: usize,
}

/// The first column of every two whole strips, or of one at the end, and how many they are.
fn pairs_of_strips(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let strips = move |column: usize| if columns - column >= 2 * COLUMNS { 2 } else { 1 };
    let first = (columns > 0).then_some(0);
    let next = move |column: &usize| {
        Some(column + strips(*column) * COLUMNS).filter(|column| *column < columns)
    };
    std::iter::successors(first, next).map(move |column| (column, strips(column)))
}

/// The product for the strips of columns of `out` that begin at `column`.
fn strip_product(out: &mut RowsMut, column: usize, operands: Operands, base: Base) {
    let Operands { depth, a, a_row, a_depth, b, b_depth, strips, b_strip } = operands;
    let rows = out.rows;
    if rows == 0 || depth == 0 {
        return;
    }
    assert!(a.len() > (rows - 1) * a_row + (depth - 1) * a_depth, "left operand");
    assert!(b.len() >= (strips - 1) * b_strip + (depth - 1) * b_depth + COLUMNS, "right operand");
    let start = match base {
        Base::Zero => Start::Zero,
        Base::Product => Start::Product,
        Base::Row(row) => Start::Row(row[column..][..strips * COLUMNS].as_ptr()),
    };
    let width = (strips * COLUMNS).min(out.columns - column);
    let place = &mut out.values[column..];
    let strip = Strip {
        rows,
        depth,
        a: a.as_ptr(),
        a_row,
        a_depth,
        b: b.as_ptr(),
        b_depth,
        strips,
        b_strip,
        c: place.as_mut_ptr(),
        c_row: out.pitch,
        start,
    };
    if width == strips * COLUMNS {
        assert!(place.len() >= (rows - 1) * out.pitch + width, "product");
        // SAFETY: the operands were checked above to hold `rows` rows, `depth` steps and `strips`
        // times 16 columns, the product just now; it is borrowed mutably, so nothing overlaps it.
        return unsafe { multiply_strip(strip) };
    }
    let accumulate = matches!(base, Base::Product);
    // The last columns: whole strips of some rows go to a buffer first.
    const ROWS: usize = 24;
    let mut whole = [0.0; ROWS * COLUMNS];
    for first in (0..rows).step_by(ROWS) {
        let strip = Strip {
            rows: ROWS.min(rows - first),
            a: a[first * a_row..].as_ptr(),
            c: whole.as_mut_ptr(),
            c_row: COLUMNS,
            start: if accumulate { Start::Zero } else { start },
            ..strip
        };
        // SAFETY: as above; the buffer has room for 24 rows of 16 columns.
        unsafe { multiply_strip(strip) };
        for (r, sums) in whole.chunks_exact(COLUMNS).take(strip.rows).enumerate() {
            let row = &mut place[(first + r) * out.pitch..][..width];
            for (c, sum) in row.iter_mut().zip(sums) {
                *c = if accumulate { *c + sum } else { *sum };
            }
        }
    }
}
