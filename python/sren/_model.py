"""Trained models: predictions, feature maps, local frames."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._images import arguments, batch

if TYPE_CHECKING:
    from ._native import ImageArgument

BUNDLED = "mnist-sren"


class Grid(NamedTuple):
    """``height x width`` positions on the image.

    Row i, column j lies at x = ``origin[0] + step * j``, y = ``origin[1] + step * i``, in pixels.
    """

    height: int
    width: int
    step: float
    origin: tuple[float, float]

    def points(self) -> NDArray[np.float64]:
        """The image points (x, y) of all positions, ``[height, width, 2]``."""
        x = self.origin[0] + self.step * np.arange(self.width)
        y = self.origin[1] + self.step * np.arange(self.height)
        return np.stack(np.meshgrid(x, y), axis=-1)


class FeatureMap(NamedTuple):
    """Features ``[n, h, w, c]`` and where on the image they lie."""

    values: NDArray[np.float32]
    grid: Grid


class Poses(NamedTuple):
    """Local frames, each ``[n, h, w]``, and their grid.

    ``scale`` is in pixels; ``angle`` in radians, from the x axis towards the y axis (down);
    ``confidence`` is 0 where the image has no pose, at most 1.
    """

    scale: NDArray[np.float32]
    angle: NDArray[np.float32]
    confidence: NDArray[np.float32]
    grid: Grid


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction for one image.

    ``orientation`` (degrees, clockwise from the right) and ``scale`` (pixels of the image) are not a
    number where the image has no pose.
    """

    name: str
    probability: float
    label: int
    probabilities: NDArray[np.float32]
    orientation: float
    scale: float


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for ``n`` images."""

    classes: tuple[str, ...]
    """The names of all classes."""
    probabilities: NDArray[np.float32]
    """``[n, classes]``"""
    orientation: NDArray[np.float64]
    """``[n]``: direction from dark to bright in degrees, clockwise from the right."""
    scale: NDArray[np.float64]
    """``[n]``: size of the structures of that direction, in pixels of the image."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """The numbers of the most probable classes, ``[n]``."""
        labels: NDArray[np.int64] = self.probabilities.argmax(axis=1)
        return labels

    @property
    def names(self) -> list[str]:
        """The names of the most probable classes."""
        return [self.classes[label] for label in self.labels]

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, index: int) -> Prediction:
        probabilities = self.probabilities[index]
        label = int(probabilities.argmax())
        return Prediction(
            self.classes[label],
            float(probabilities[label]),
            label,
            probabilities,
            float(self.orientation[index]),
            float(self.scale[index]),
        )

    def __iter__(self) -> Iterator[Prediction]:
        return (self[index] for index in range(len(self)))


class Model:
    """A trained network and how it sees images. Made by :func:`load`."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = os.fsdecode(run)
        self._native = _native.Model(run)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(self._native.classes)

    @property
    def equivariance(self) -> str:
        """The equivariance group: sren (similarity), so2 (rotation), scale or cnn (none)."""
        return self._native.equivariance

    @property
    def parameters(self) -> int:
        """The number of learned values."""
        return self._native.parameters

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of what the network sees."""
        height, width, channels = self._native.input_shape
        return height, width, channels

    def predict(self, images: Any) -> Predictions:
        """Classes, probabilities, orientation and scale of images."""
        parts = [self._native.predict(part) for part in _batches(arguments(images))]
        probabilities, orientation, scale = (_joined(arrays) for arrays in zip(*parts))
        return Predictions(self.classes, probabilities, orientation, scale)

    def preprocess(self, images: Any) -> NDArray[np.float32]:
        """What the network sees of images, ``[n, height, width, channels]``.

        The image letterboxed to a square, on a canvas.
        """
        parts = [self._native.preprocess(part) for part in _batches(arguments(images))]
        return _joined(parts)

    def features(self, images: Any) -> dict[str, FeatureMap]:
        """The equivariant feature maps of all layers by name, first to last.

        Their grids are in pixels of what the network sees (:meth:`preprocess`).
        """
        parts = [self._native.features(part) for part in _batches(arguments(images))]
        return {
            layers[0][0]: FeatureMap(_joined([layer[1] for layer in layers]), _grid(layers[0][2]))
            for layers in zip(*parts)
        }

    def poses(self, images: Any, stride: int = 1) -> Poses:
        """The network's local frames on every ``stride``-th pixel of what it sees."""
        parts = [self._native.poses(part, stride) for part in _batches(arguments(images))]
        scale, angle, confidence = (_joined(arrays) for arrays in zip(*(p[0] for p in parts)))
        return Poses(scale, angle, confidence, _grid(parts[0][1]))

    def export(
        self,
        path: str | os.PathLike[str] = "model.onnx",
        *,
        size: int | None = None,
        taps: str = "grid",
        layout: str = "nchw",
        outputs: Sequence[str] = ("logits", "probabilities"),
        with_preprocessing: bool = False,
    ) -> None:
        """Writes the model as one ONNX file of standard operators, as ``sren export`` does.

        ``size`` is the side of the images that the network sees, by default as in training. ``taps``
        are sampled by ``"grid"`` (GridSample, opset 17) or ``"deform"`` (DeformConv, opset 19).
        ``layout`` is ``"nchw"`` or ``"nhwc"``. ``outputs`` are some of ``"logits"``,
        ``"probabilities"``, ``"poses"`` and ``"features"``. With ``with_preprocessing`` the file takes
        images of any size.
        """
        self._native.export(path, size, taps, layout, list(outputs), with_preprocessing)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model, (self._run,))

    def __repr__(self) -> str:
        return (
            f"Model({self._run!r}, {self.equivariance}, "
            f"{len(self.classes)} classes, {self.parameters:,} parameters)"
        )


def load(run: str | os.PathLike[str] = BUNDLED) -> Model:
    """The model of the run in a folder, or ``"mnist-sren"``, the bundled one."""
    return Model(run)


def poses(images: Any, stride: int = 1, **parameters: Any) -> Poses:
    """The local frames of images (arrays or PIL images) on every ``stride``-th pixel.

    ``parameters`` are those of the pose estimator: ``inner``, ``outer`` (radii of the neighbourhood),
    ``min_scale``, ``max_scale``, ``rings``, ``scales``, ``tau``, ``q`` (template), and the gates
    ``prominence``, ``lead``, ``contrast``.
    """
    estimator = pose_estimator(pose_config(**parameters))
    pixels = batch(images)
    if pixels.min() < -1e-3 or pixels.max() > 1.001:
        raise ValueError(f"image: expected floats in 0..1 (or uint8), got {pixels.max():g}")
    (scale, angle, confidence), grid = estimator.fields(pixels, stride)
    return Poses(scale, angle, confidence, _grid(grid))


def pose_config(**parameters: Any) -> str:
    """The parameters of a pose estimator as JSON; those not given have their defaults."""
    config = json.loads(_native.pose_defaults())
    for name, value in parameters.items():
        if name not in config:
            raise ValueError(f"poses: expected one of {', '.join(config)}, got {name}")
        if isinstance(value, tuple):
            value = list(value)
        config[name] = value
    try:
        return json.dumps(config)
    except TypeError as error:
        raise ValueError(f"poses: expected numbers, got {error}") from error


@lru_cache(maxsize=16)
def pose_estimator(config: str) -> _native.PoseEstimator:
    """The estimator of a configuration; its plans for grids are kept."""
    return _native.PoseEstimator(config)


def _batches(images: list[ImageArgument]) -> Iterator[list[ImageArgument]]:
    """As many images as are computed at once, one batch after the other."""
    size = _native.BATCH
    return (images[start : start + size] for start in range(0, len(images), size))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _grid(grid: _native.GridTuple) -> Grid:
    height, width, step, (x, y) = grid
    return Grid(height, width, step, (x, y))
