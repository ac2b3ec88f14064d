//! Between NumPy arrays and the values of the crates.

use numpy::{
    Element, PyArray1, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use sren::{FeatureMap, Grid, Image, PoseField};
use sren_data::NamedImage;
use sren_lab::inference::{Predictor, PreparedImage};

use crate::failure::{Failure, Result};

/// How far from 0..1 values of an image may be: what resizing leaves.
const TOLERANCE: f32 = 1e-3;

/// An image as Python gives it: `[h, w, c]`, bytes or floats in 0..1, or the name of a file.
#[derive(FromPyObject)]
pub(crate) enum ImageArgument<'py> {
    /// Bytes.
    #[pyo3(transparent)]
    Bytes(PyReadonlyArray3<'py, u8>),
    /// Floats.
    #[pyo3(transparent)]
    Floats(PyReadonlyArray3<'py, f32>),
    /// A file, or a digit of the bundled test set.
    #[pyo3(transparent)]
    Name(String),
}

/// The same without the interpreter: views of the caller's arrays.
#[derive(Clone)]
pub(crate) enum ImageView<'a> {
    Bytes(&'a [u8], [usize; 3]),
    Floats(&'a [f32], [usize; 3]),
    Named(NamedImage),
}

/// The images of all arguments; a name may stand for several.
pub(crate) fn views<'a>(images: &'a [ImageArgument<'_>]) -> Result<Vec<ImageView<'a>>> {
    let mut views = Vec::with_capacity(images.len());
    for image in images {
        match image {
            ImageArgument::Bytes(array) => {
                views.push(ImageView::Bytes(
                    array.as_slice().map_err(order)?,
                    sizes(array.shape())?,
                ));
            }
            ImageArgument::Floats(array) => {
                views.push(ImageView::Floats(
                    array.as_slice().map_err(order)?,
                    sizes(array.shape())?,
                ));
            }
            ImageArgument::Name(name) => {
                views.extend(NamedImage::parse(name)?.into_iter().map(ImageView::Named));
            }
        }
    }
    Ok(views)
}

impl ImageView<'_> {
    /// What the network of `predictor` sees of it.
    pub(crate) fn prepare(&self, predictor: &Predictor) -> Result<PreparedImage> {
        let image = match self {
            Self::Named(named) => {
                let read = named.read(predictor.preprocessing().letterbox.side)?;
                return Ok(predictor.prepare(named.to_string(), &read)?);
            }
            Self::Bytes(values, shape) => {
                let values = values.iter().map(|value| f32::from(*value) / 255.0).collect();
                image(shape, values)?
            }
            Self::Floats(values, shape) => {
                let inside = -TOLERANCE..=1.0 + TOLERANCE;
                let outside = |value: &&f32| value.is_finite() && !inside.contains(*value);
                if let Some(value) = values.iter().find(outside) {
                    return Err(Failure::value(format!(
                        "image: expected floats in 0..1 (or uint8), got {value}"
                    )));
                }
                image(shape, values.to_vec())?
            }
        };
        Ok(predictor.prepare("image".into(), &image.into())?)
    }
}

fn image([height, width, channels]: &[usize; 3], values: Vec<f32>) -> Result<Image> {
    if !matches!(channels, 1 | 3) {
        return Err(Failure::value(format!("image: expected 1 or 3 channels, got {channels}")));
    }
    Ok(Image::new(*height, *width, *channels, values)?)
}

/// The sizes of an array of `D` axes.
pub(crate) fn sizes<const D: usize>(shape: &[usize]) -> Result<[usize; D]> {
    shape.try_into().map_err(|_| Failure::value(format!("expected {D} axes, got {shape:?}")))
}

/// An array that is not in C order: the package makes it so.
pub(crate) fn order(error: impl std::fmt::Display) -> Failure {
    Failure::value(format!("array: expected C order, got {error}"))
}

/// A new array of `shape` that takes over `values`.
pub(crate) fn array3<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 3],
) -> Result<Bound<'_, PyArray3<T>>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?)
}

/// A new array of `shape` that takes over `values`.
pub(crate) fn array4<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 4],
) -> Result<Bound<'_, PyArray4<T>>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?)
}

/// Height, width, step and origin (x, y) of a grid.
pub(crate) type GridTuple = (usize, usize, f64, [f64; 2]);

/// A grid for Python.
pub(crate) fn grid_tuple(grid: &Grid) -> GridTuple {
    (grid.height, grid.width, grid.step, grid.origin)
}

/// A grid from Python.
pub(crate) fn grid((height, width, step, origin): GridTuple) -> Grid {
    Grid { height, width, step, origin }
}

/// Scale, angle and confidence `[n, h, w]` of the best poses.
pub(crate) type PoseArrays<'py> =
    (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray3<f32>>, Bound<'py, PyArray3<f32>>);

/// The best pose of every position.
pub(crate) fn pose_arrays<'py>(py: Python<'py>, field: &PoseField) -> Result<PoseArrays<'py>> {
    let (grid, poses) = (field.grid(), field.poses());
    let shape = [field.batch(), grid.height, grid.width];
    let best = |values: &[f32]| array3(py, values.iter().step_by(poses).copied().collect(), shape);
    let confidence = array3(py, field.confidence().to_vec(), shape)?;
    Ok((best(field.scale())?, best(field.angle())?, confidence))
}

/// The values of a feature map, and its shape `[n, h, w, c]`.
pub(crate) fn feature_values(map: FeatureMap) -> Result<(Vec<f32>, [usize; 4])> {
    let shape = map.values.dims();
    let values = map.values.into_data().try_into_vec::<f32>();
    Ok((values.map_err(|e| Failure::value(format!("features: expected f32, got {e:?}")))?, shape))
}
