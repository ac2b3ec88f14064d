"""Scale and rotation equivariant networks: predictions, local frames, training, PyTorch layers.

>>> import sren
>>> model = sren.load("mnist-sren")
>>> images, labels = sren.datasets.mnist("test")
>>> model.predict(images[0]).names
['7']

Images are arrays ``[h, w]``, ``[h, w, c]`` or ``[n, h, w, c]`` (``uint8``, or floats in 0..1), PIL
images, paths, or lists of these. Layers for PyTorch are in :mod:`sren.torch`, which is imported
only when asked for.
"""

from . import datasets
from ._equivariance import LayerError, equivariance_error, equivariance_errors
from ._model import FeatureMap, Grid, Model, Poses, Prediction, Predictions, load, poses
from ._native import __version__, get_num_threads, set_num_threads
from ._training import Run, TrainingEpoch, TrainingStep, evaluate, resume, train

__all__ = [
    "FeatureMap",
    "Grid",
    "LayerError",
    "Model",
    "Poses",
    "Prediction",
    "Predictions",
    "Run",
    "TrainingEpoch",
    "TrainingStep",
    "__version__",
    "datasets",
    "equivariance_error",
    "equivariance_errors",
    "evaluate",
    "get_num_threads",
    "load",
    "poses",
    "resume",
    "set_num_threads",
    "train",
]
