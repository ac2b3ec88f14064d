//! The pose estimator on arrays.

use numpy::{PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use sren::pose::Images;
use sren::{Grid, PoseEstimatorConfig};

use crate::arrays::{GridTuple, PoseArrays, grid_tuple, order, pose_arrays, sizes};
use crate::compute::compute;
use crate::failure::{Failure, Result};

/// The default parameters as JSON.
#[pyfunction]
pub(crate) fn pose_defaults() -> Result<String> {
    serde_json::to_string(&PoseEstimatorConfig::new()).map_err(Failure::value)
}

/// Reads a local scale and orientation at every position.
#[pyclass(frozen, module = "sren._native")]
pub(crate) struct PoseEstimator {
    estimator: sren::PoseEstimator,
}

#[pymethods]
impl PoseEstimator {
    /// An estimator by its parameters as JSON.
    #[new]
    fn new(config: &str) -> Result<Self> {
        let config: PoseEstimatorConfig = serde_json::from_str(config)
            .map_err(|e| Failure::value(format!("PoseEstimator: expected parameters, got {e}")))?;
        Ok(Self { estimator: config.init()? })
    }

    /// The poses of images `[n, h, w, c]` on every `stride`-th cell, and their grid.
    fn fields<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArray4<'py, f32>,
        stride: usize,
    ) -> Result<(PoseArrays<'py>, GridTuple)> {
        let [n, h, w, c] = sizes(images.shape())?;
        let grid = Grid::pixels(h, w).cell_centred(stride)?;
        let values = images.as_slice().map_err(order)?;
        let field = compute(py, || -> Result<_> {
            Ok(self.estimator.field(&Images::new(values, n, h, w, c)?, &grid)?)
        })?;
        Ok((pose_arrays(py, &field)?, grid_tuple(&grid)))
    }
}
