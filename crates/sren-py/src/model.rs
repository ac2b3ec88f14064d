//! A trained model.

use std::path::{Path, PathBuf};

use numpy::{PyArray1, PyArray2, PyArray4, PyArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;
use sren::Grid;
use sren::equivariance::network_layers;
use sren_lab::atomic_write;
use sren_lab::inference::{ExportOptions, Posterior, Predictor, PreparedImage};

use crate::arrays::{
    GridTuple, ImageArgument, ImageView, PoseArrays, array4, feature_values, grid_tuple,
    pose_arrays, views,
};
use crate::compute::compute;
use crate::failure::Result;

/// Probabilities `[n, classes]`, orientation in degrees `[n]`, scale in pixels `[n]`; not a number
/// where there is no pose.
type Predictions<'py> =
    (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Name, values `[n, h, w, c]` and grid of a layer.
type Layer<'py> = (String, Bound<'py, PyArray4<f32>>, GridTuple);

/// A network and how it sees images.
#[pyclass(frozen, module = "sren._native")]
pub(crate) struct Model {
    predictor: Predictor,
}

#[pymethods]
impl Model {
    /// The model of the run in a folder, or the bundled one.
    #[new]
    fn new(py: Python<'_>, run: PathBuf) -> Result<Self> {
        compute(py, || Predictor::open(Path::new(&run))).map(|predictor| Self { predictor })
    }

    /// The names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.predictor.classes().to_vec()
    }

    /// The equivariance group: sren, so2, scale or cnn.
    #[getter]
    fn equivariance(&self) -> &'static str {
        self.predictor.network().equivariance().name()
    }

    /// The learned values.
    #[getter]
    fn parameters(&self) -> usize {
        sren::models::parameter_count(self.predictor.network())
    }

    /// Height, width and channels of what the network sees.
    #[getter]
    fn input_shape(&self) -> [usize; 3] {
        let preprocessing = self.predictor.preprocessing();
        let [height, width] = preprocessing.padding.canvas;
        [height, width, preprocessing.letterbox.channels]
    }

    /// The predictions for images.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        images: Vec<ImageArgument<'py>>,
    ) -> Result<Predictions<'py>> {
        let views = views(&images)?;
        let classes = self.predictor.classes().len();
        let mut probabilities = Vec::with_capacity(views.len() * classes);
        let (mut orientation, mut scale) = (Vec::new(), Vec::new());
        self.each_batch(py, &views, |py, prepared| {
            let found = compute(py, || self.predictor.posteriors(&prepared))?;
            for Posterior { probabilities: of_image, pose, .. } in found {
                probabilities.extend(of_image);
                orientation.push(pose.map_or(f64::NAN, |pose| pose.orientation_deg));
                scale.push(pose.map_or(f64::NAN, |pose| pose.scale_px));
            }
            Ok(())
        })?;
        let probabilities = PyArray1::from_vec(py, probabilities);
        Ok((
            probabilities.reshape([orientation.len(), classes])?,
            PyArray1::from_vec(py, orientation),
            PyArray1::from_vec(py, scale),
        ))
    }

    /// The feature maps of all layers in local frames.
    fn features<'py>(
        &self,
        py: Python<'py>,
        images: Vec<ImageArgument<'py>>,
    ) -> Result<Vec<Layer<'py>>> {
        let views = views(&images)?;
        let mut layers: Vec<(String, Vec<f32>, [usize; 4], GridTuple)> = Vec::new();
        self.each_batch(py, &views, |py, prepared| {
            let maps = compute(py, || {
                network_layers(self.predictor.network(), self.predictor.input(&prepared))
            })?;
            for (index, (name, map)) in maps.into_iter().enumerate() {
                let grid = grid_tuple(&map.grid);
                let (values, shape) = feature_values(map)?;
                match layers.get_mut(index) {
                    None => layers.push((name, values, shape, grid)),
                    Some((_, all, [n, ..], _)) => {
                        all.extend(values);
                        *n += shape[0];
                    }
                }
            }
            Ok(())
        })?;
        let layer = |(name, values, shape, grid)| Ok((name, array4(py, values, shape)?, grid));
        layers.into_iter().map(layer).collect()
    }

    /// Poses on every `stride`-th cell of what the network sees, and their grid.
    fn poses<'py>(
        &self,
        py: Python<'py>,
        images: Vec<ImageArgument<'py>>,
        stride: usize,
    ) -> Result<(PoseArrays<'py>, GridTuple)> {
        let views = views(&images)?;
        let [height, width, _] = self.input_shape();
        let grid = Grid::pixels(height, width).cell_centred(stride)?;
        let field = compute(py, || -> Result<_> {
            let prepared = self.prepared(&views)?;
            let input = self.predictor.input(&prepared.iter().collect::<Vec<_>>());
            let estimator = self.predictor.network().classifier().pose_estimator();
            Ok(estimator.fields(&input, &[grid])?.remove(0))
        })?;
        Ok((pose_arrays(py, &field)?, grid_tuple(&grid)))
    }

    /// Writes the model as one ONNX file.
    #[allow(clippy::too_many_arguments)]
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        size: Option<usize>,
        taps: &str,
        layout: &str,
        outputs: Vec<String>,
        with_preprocessing: bool,
    ) -> Result<()> {
        let mut options = ExportOptions::default();
        (options.size, options.with_preprocessing) = (size, with_preprocessing);
        (options.taps, options.layout) = (taps.parse()?, layout.parse()?);
        let outputs = outputs.iter().map(|name| name.parse()).collect::<Result<Vec<_>, _>>()?;
        options.set_outputs(&outputs);
        compute(py, || -> Result<_> {
            let file = self.predictor.model().export_onnx(&options)?;
            Ok(atomic_write(&path, &file.bytes)?)
        })
    }

    /// What the network sees of images, `[n, h, w, c]`.
    fn preprocess<'py>(
        &self,
        py: Python<'py>,
        images: Vec<ImageArgument<'py>>,
    ) -> Result<Bound<'py, PyArray4<f32>>> {
        let views = views(&images)?;
        let prepared = compute(py, || self.prepared(&views))?;
        let values = prepared.iter().flat_map(|image| image.input().data()).copied().collect();
        let [height, width, channels] = self.input_shape();
        array4(py, values, [prepared.len(), height, width, channels])
    }
}

impl Model {
    fn prepared(&self, views: &[ImageView<'_>]) -> Result<Vec<PreparedImage>> {
        views.par_iter().map(|view| view.prepare(&self.predictor)).collect()
    }

    /// Calls `work` on one batch after the other, until a signal interrupts it.
    fn each_batch(
        &self,
        py: Python<'_>,
        views: &[ImageView<'_>],
        mut work: impl FnMut(Python<'_>, Vec<&PreparedImage>) -> Result<()>,
    ) -> Result<()> {
        for batch in views.chunks(Predictor::BATCH) {
            let prepared = compute(py, || self.prepared(batch))?;
            work(py, prepared.iter().collect())?;
            py.check_signals()?;
        }
        Ok(())
    }
}
