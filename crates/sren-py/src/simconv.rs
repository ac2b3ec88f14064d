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

/// A convolution without the interpreter: views of the caller's arrays, whose shapes fit each other.
struct Convolution<'a> {
    scale: &'a [f32],
    angle: &'a [f32],
    confidence: Option<&'a [f32]>,
    input_confidence: Option<&'a [f32]>,
    kappa: f32,
    batch: usize,
    input: Grid,
    output: Grid,
    /// Side of the kernel, channels of input and output.
    kernel: [usize; 3],
}

impl<'a> Convolution<'a> {
    /// In `frames`, of an input `[n, h, w, c]` with a kernel `[k, k, c_in, c_out]`.
    fn new(frames: &'a Frames<'_>, input: &[usize], weight: &[usize]) -> Result<Self> {
        let ([batch, height, width, channels], [size, other, c_in, c_out]) =
            (sizes(input)?, sizes(weight)?);
        if channels != c_in || size != other {
            let got =
                format!("an input of {channels} channels and [{size}, {other}, {c_in}, {c_out}]");
            return Err(Failure::value(format!(
                "SimConv2d: expected a square kernel [k, k, c_in, c_out] for the input, got {got}"
            )));
        }
        let input = Grid::pixels(height, width);
        let output = input.cell_centred(frames.stride)?;
        let [images, ..] = sizes::<3>(frames.scale.shape())?;
        if images != batch {
            return Err(Failure::value(format!(
                "SimConv2d: expected frames of {batch} images, got {images}"
            )));
        }
        let on_output = [batch, output.height, output.width];
        let on_input = [batch, height, width];
        let given = |name, array: &'a Option<_>, shape| {
            array.as_ref().map(|array| values(name, array, shape)).transpose()
        };
        Ok(Self {
            scale: values("scale", &frames.scale, on_output)?,
            angle: values("angle", &frames.angle, on_output)?,
            confidence: given("confidence", &frames.confidence, on_output)?,
            input_confidence: given("input_confidence", &frames.input_confidence, on_input)?,
            kappa: frames.kappa,
            batch,
            input,
            output,
            kernel: [size, c_in, c_out],
        })
    }

    fn taps(&self) -> Result<TapTable> {
        let ones = || vec![1.0; self.batch * self.output.len()];
        let confidence = self.confidence.map_or_else(ones, <[f32]>::to_vec);
        let (scale, angle) = (self.scale.to_vec(), self.angle.to_vec());
        let field = PoseField::new(self.output, self.batch, 1, scale, angle, ones(), confidence)?;
        let active_only = self.confidence.is_some();
        let taps = TapTable::new(&field, &self.input, self.kernel[0], self.kappa, active_only)?;
        let Some(confidence) = self.input_confidence else { return Ok(taps) };
        let gated = PoseField::identity(self.input, self.batch)?;
        let gated = gated.with_confidence(confidence.to_vec())?;
        Ok(taps.with_active_input(&active_positions(&gated))?)
    }

    fn operator(&self) -> Result<SimConv> {
        let [_, c_in, c_out] = self.kernel;
        Ok(SimConv::new(c_in, c_out, false)?)
    }
}

/// The values of an array that must have the shape `expected`.
fn values<'a>(
    name: &str,
    array: &'a PyReadonlyArray3<'_, f32>,
    expected: [usize; 3],
) -> Result<&'a [f32]> {
    let got: [usize; 3] = sizes(array.shape())?;
    if got != expected {
        return Err(Failure::value(format!(
            "SimConv2d: expected {name} of {expected:?}, got {got:?}"
        )));
    }
    array.as_slice().map_err(order)
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
    let conv = Convolution::new(&frames, input.shape(), weight.shape())?;
    let (values, weight) = (input.as_slice().map_err(order)?, weight.as_slice().map_err(order)?);
    let bias = bias.as_ref().map(|bias| bias.as_slice().map_err(order)).transpose()?;
    let output = compute(py, || -> Result<_> {
        Ok(conv.operator()?.forward(&conv.taps()?, values, weight, bias)?)
    })?;
    array4(py, output, [conv.batch, conv.output.height, conv.output.width, conv.kernel[2]])
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
    let conv = Convolution::new(&frames, input.shape(), weight.shape())?;
    let shapes = (sizes(input.shape())?, sizes(weight.shape())?);
    let (values, weight) = (input.as_slice().map_err(order)?, weight.as_slice().map_err(order)?);
    let grad = grad.as_slice().map_err(order)?;
    let found = compute(py, || -> Result<_> {
        Ok(conv.operator()?.backward(&conv.taps()?, values, weight, grad, need_input)?)
    })?;
    Ok((
        found.input.map(|values| array4(py, values, shapes.0)).transpose()?,
        array4(py, found.weight, shapes.1)?,
        PyArray1::from_vec(py, found.bias),
    ))
}
