//! The equivariance error of a Python function.

use std::cell::RefCell;

use burn::tensor::{Tensor, TensorData};
use numpy::{PyArray4, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use sren::equivariance::{NamedFeatures, Protocol, measure, warped as warp_all};
use sren::{Error, FeatureMap, Image, Similarity};
use sren_lab::inference::inference_device;

use crate::arrays::{GridTuple, array4, feature_values, grid, order, sizes};
use crate::compute::compute;
use crate::failure::{Failure, Result};

/// Name, values `[n, h, w, c]` and grid of a feature map.
type Named<'py> = (String, PyReadonlyArray4<'py, f32>, GridTuple);

/// Scale and angle in radians of a transform.
type Transform = (f64, f64);

/// Name, error, centred error, the error of each transform, and positions compared of a layer.
type Errors = Vec<(String, f64, f64, Vec<f64>, usize)>;

/// The equivariance error of `features`, which maps images `[n, h, w, c]` to feature maps.
#[pyfunction]
pub(crate) fn equivariance_error(
    py: Python<'_>,
    features: Bound<'_, PyAny>,
    images: PyReadonlyArray4<'_, f32>,
    transforms: Vec<Transform>,
    radius: f64,
    positions: usize,
) -> Result<Errors> {
    let [_, height, width, _] = sizes(images.shape())?;
    let images = read(&images)?;
    let transform = |(scale, angle)| Similarity::new(scale, angle, [0.0; 2]);
    let transforms: Vec<Similarity> =
        transforms.into_iter().map(transform).collect::<Result<_, _>>()?;
    let protocol = Protocol { positions, ..Protocol::new(height, width, radius) };
    // An exception of the function is raised as it is.
    let raised: RefCell<Option<Failure>> = RefCell::new(None);
    let call = |transform: &Similarity| {
        let maps = transformed(py, &images, transform).and_then(|images| {
            py.check_signals()?;
            let maps: Vec<Named<'_>> = features.call1((images,))?.extract()?;
            maps.into_iter().map(feature_map).collect::<Result<Vec<_>>>()
        });
        maps.map_err(|failure| {
            raised.replace(Some(failure));
            Error::shape("equivariance_error", "features", "an exception")
        })
    };
    let errors = measure(&protocol, &transforms, call);
    if let Some(failure) = raised.into_inner() {
        return Err(failure);
    }
    let entry = |layer: sren::equivariance::LayerError| {
        (layer.name, layer.error, layer.centred, layer.by_transform, layer.compared)
    };
    Ok(errors?.into_iter().map(entry).collect())
}

fn read(images: &PyReadonlyArray4<'_, f32>) -> Result<Vec<Image>> {
    let [_, h, w, c] = sizes(images.shape())?;
    let values = images.as_slice().map_err(order)?;
    let image = |values: &[f32]| Ok(Image::new(h, w, c, values.to_vec())?);
    values.chunks_exact((h * w * c).max(1)).map(image).collect()
}

fn transformed<'py>(
    py: Python<'py>,
    images: &[Image],
    transform: &Similarity,
) -> Result<Bound<'py, PyArray4<f32>>> {
    let (values, shape) = compute(py, || -> Result<_> {
        let batch = warp_all(images, transform, &inference_device())?;
        feature_values(FeatureMap::from_images(batch))
    })?;
    array4(py, values, shape)
}

fn feature_map((name, values, place): Named<'_>) -> Result<NamedFeatures> {
    let shape: [usize; 4] = sizes(values.shape())?;
    let data = TensorData::new(values.as_slice().map_err(order)?.to_vec(), shape);
    Ok((name, FeatureMap::new(Tensor::from_data(data, &inference_device()), grid(place))?))
}
