//! Matrix products on row-major slices.

use gemm::Parallelism;

/// A row-major matrix, or the transpose of one, inside a slice.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// `values` as `rows x columns`.
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "matrix of {rows} x {columns}");
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// The transpose, without moving anything.
    pub(super) fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// `out = left * right`, or `out += left * right` with `accumulate`, on the calling thread.
pub(super) fn multiply(out: &mut [f32], left: Matrix, right: Matrix, accumulate: bool) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!(k, right.rows, "inner sizes of a product");
    assert_eq!(out.len(), m * n, "size of a product");
    // SAFETY: `Matrix` covers its slice exactly, sizes agree by the assertions above, and `out` is
    // borrowed mutably, so it overlaps neither operand.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            accumulate,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
