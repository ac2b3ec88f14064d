//! The similarity convolution on arrays, forward and backward.

use numpy::{
    PyArray1, PyArray4, PyReadonlyArray1, PyReadonlyArray3, PyReadonlyArray4, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use sren::Grid;
use sren_kernels::taps::active_positions;
use sren_kernels::{PoseField, SimConv, TapTable};

use crate::arrays::{array4, order, sizes};
use crate::compute::compute;
use crate::failure::{Failure, Result};

/// The frames that a convolution computes in, on its output grid.
#[derive(FromPyObject)]
pub(crate) struct Frames<'py> {
    /// `[n, h, w]`
    scale: PyReadonlyArray3<'py, f32>,
    /// `[n, h, w]`
    angle: PyReadonlyArray3<'py, f32>,
    /// `[n, h, w]`: only positions of confidence > 0 are computed. All, if there is none.
    confidence: Option<PyReadonlyArray3<'py, f32>>,
    /// `[n, h, w]` of the input grid: the input is zero where it is 0, and its gradient not needed.
    input_confidence: Option<PyReadonlyArray3<'py, f32>>,
    /// Every `stride`-th cell of the input grid is computed.
    stride: usize,
    /// Distance of neighbouring taps at scale 1, in steps of the input grid.
    kappa: f32,
}

impl Frames<'_> {
    /// The taps of a kernel of `size` x `size` on an input of `height` x `width`.
    fn taps(&self, [height, width]: [usize; 2], size: usize) -> Result<TapTable> {
        let input = Grid::pixels(height, width);
        let output = input.cell_centred(self.stride)?;
        let [n, _, _] = sizes(self.scale.shape())?;
        for (name, array) in [("scale", &self.scale), ("angle", &self.angle)] {
            check_shape(name, array, [n, output.height, output.width])?;
        }
        let copy = |array: &PyReadonlyArray3<f32>| -> Result<Vec<f32>> {
            Ok(array.as_slice().map_err(order)?.to_vec())
        };
        let ones = || vec![1.0; n * output.len()];
        let confidence = match &self.confidence {
            Some(array) => {
                check_shape("confidence", array, [n, output.height, output.width])?;
                copy(array)?
            }
            None => ones(),
        };
        let (scale, angle) = (copy(&self.scale)?, copy(&self.angle)?);
        let field = PoseField::new(output, n, 1, scale, angle, ones(), confidence)?;
        let active_only = self.confidence.is_some();
        let taps = TapTable::new(&field, &input, size, self.kappa, active_only)?;
        let Some(array) = &self.input_confidence else { return Ok(taps) };
        check_shape("input_confidence", array, [n, height, width])?;
        let gated = PoseField::identity(input, n)?.with_confidence(copy(array)?)?;
        Ok(taps.with_active_input(&active_positions(&gated))?)
    }
}

fn check_shape(name: &str, array: &PyReadonlyArray3<'_, f32>, expected: [usize; 3]) -> Result<()> {
    let got: [usize; 3] = sizes(array.shape())?;
    if got == expected {
        return Ok(());
    }
    Err(Failure::value(format!("SimConv2d: expected {name} of {expected:?}, got {got:?}")))
}

/// The taps, the kernel and the number of channels of both sides, checked against each other.
fn plan(
    frames: &Frames<'_>,
    input: &PyReadonlyArray4<'_, f32>,
    weight: &PyReadonlyArray4<'_, f32>,
) -> Result<(TapTable, SimConv)> {
    let ([n, height, width, channels], [size, other, c_in, c_out]) =
        (sizes(input.shape())?, sizes(weight.shape())?);
    if channels != c_in || size != other {
        let got = format!("an input of {channels} channels and [{size}, {other}, {c_in}, {c_out}]");
        return Err(Failure::value(format!(
            "SimConv2d: expected a square kernel [k, k, c_in, c_out] for the input, got {got}"
        )));
    }
    let taps = frames.taps([height, width], size)?;
    if taps.batch() != n {
        let expected = format!("frames of {n} images");
        return Err(Failure::value(format!(
            "SimConv2d: expected {expected}, got {}",
            taps.batch()
        )));
    }
    Ok((taps, SimConv::new(c_in, c_out, false)?))
}

/// Input `[n, h, w, c_in]`, weight `[k, k, c_in, c_out]`, bias `[c_out]` -> `[n, h', w', c_out]`.
#[pyfunction]
pub(crate) fn simconv_forward<'py>(
    py: Python<'py>,
    frames: Frames<'py>,
    input: PyReadonlyArray4<'py, f32>,
    weight: PyReadonlyArray4<'py, f32>,
    bias: Option<PyReadonlyArray1<'py, f32>>,
) -> Result<Bound<'py, PyArray4<f32>>> {
    let (taps, conv) = plan(&frames, &input, &weight)?;
    let (values, weight) = (input.as_slice().map_err(order)?, weight.as_slice().map_err(order)?);
    let bias = bias.as_ref().map(|bias| bias.as_slice().map_err(order)).transpose()?;
    let output = compute(py, || conv.forward(&taps, values, weight, bias))?;
    let grid = taps.output_grid();
    array4(py, output, [taps.batch(), grid.height, grid.width, conv.c_out()])
}

/// The gradients by input, if needed, by weight and by bias.
type Gradients<'py> =
    (Option<Bound<'py, PyArray4<f32>>>, Bound<'py, PyArray4<f32>>, Bound<'py, PyArray1<f32>>);

/// The gradients of a loss whose gradient by the output is `grad` `[n, h', w', c_out]`.
#[pyfunction]
pub(crate) fn simconv_backward<'py>(
    py: Python<'py>,
    frames: Frames<'py>,
    input: PyReadonlyArray4<'py, f32>,
    weight: PyReadonlyArray4<'py, f32>,
    grad: PyReadonlyArray4<'py, f32>,
    need_input: bool,
) -> Result<Gradients<'py>> {
    let (taps, conv) = plan(&frames, &input, &weight)?;
    let shapes = (sizes(input.shape())?, sizes(weight.shape())?);
    let (values, weight) = (input.as_slice().map_err(order)?, weight.as_slice().map_err(order)?);
    let grad = grad.as_slice().map_err(order)?;
    let found = compute(py, || conv.backward(&taps, values, weight, grad, need_input))?;
    Ok((
        found.input.map(|values| array4(py, values, shapes.0)).transpose()?,
        array4(py, found.weight, shapes.1)?,
        PyArray1::from_vec(py, found.bias),
    ))
}
