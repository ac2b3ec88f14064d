//! The bundled digits and the paper's test sets.

use numpy::{PyArray1, PyArray3, PyArray4};
use pyo3::prelude::*;
use sren_data::{Dataset, Mnist, Split, TestSet};

use crate::arrays::{array3, array4};
use crate::compute::compute;
use crate::failure::{Failure, Result};

/// Labels `[n]`.
type Labels<'py> = Bound<'py, PyArray1<i64>>;

fn split(name: &str) -> Result<Split> {
    match name {
        "train" => Ok(Split::Train),
        "test" => Ok(Split::Test),
        _ => Err(Failure::value(format!("split: expected train or test, got {name}"))),
    }
}

/// The digits as they are, `[n, 28, 28]`, and their labels.
#[pyfunction]
pub(crate) fn digits<'py>(
    py: Python<'py>,
    name: &str,
) -> Result<(Bound<'py, PyArray3<u8>>, Labels<'py>)> {
    let split = split(name)?;
    let digits = compute(py, || Mnist::load(split))?;
    let labels: Vec<i64> = digits.labels().iter().map(|label| i64::from(*label)).collect();
    let shape = [labels.len(), Mnist::SIDE, Mnist::SIDE];
    Ok((array3(py, digits.into_pixels(), shape)?, PyArray1::from_vec(py, labels)))
}

/// Digits on their canvas, transformed as in a test set: `[n, 56, 56, 1]` and their labels.
#[pyfunction]
pub(crate) fn test_digits<'py>(
    py: Python<'py>,
    set: &str,
    name: &str,
    indices: Vec<usize>,
) -> Result<(Bound<'py, PyArray4<f32>>, Labels<'py>)> {
    let (set, split): (TestSet, Split) = (set.parse()?, split(name)?);
    let batch =
        compute(py, || Dataset::mnist(split)?.batch(&indices, |index| set.transform(index)))?;
    let labels = batch.labels.iter().map(|label| i64::from(*label)).collect();
    Ok((array4(py, batch.images, batch.shape)?, PyArray1::from_vec(py, labels)))
}
