"""The native part: arrays are in C order, images ``[n, h, w, c]``."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

__version__: str
BATCH: int

Float = NDArray[np.float32]
GridTuple = tuple[int, int, float, Sequence[float]]
PoseArrays = tuple[Float, Float, Float]
ImageArgument = NDArray[np.uint8] | Float | str
Report = Callable[[str, dict[str, Any]], bool | None]
Trained = tuple[PathLike[str], bool, list[str]]

@final
class Model:
    def __new__(cls, run: str | PathLike[str]) -> Model: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def equivariance(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def input_shape(self) -> list[int]: ...
    def predict(
        self, images: Sequence[ImageArgument]
    ) -> tuple[Float, NDArray[np.float64], NDArray[np.float64]]: ...
    def features(self, images: Sequence[ImageArgument]) -> list[tuple[str, Float, GridTuple]]: ...
    def poses(
        self, images: Sequence[ImageArgument], stride: int
    ) -> tuple[PoseArrays, GridTuple]: ...
    def preprocess(self, images: Sequence[ImageArgument]) -> Float: ...
    def export(
        self,
        path: str | PathLike[str],
        size: int | None,
        taps: str,
        layout: str,
        outputs: Sequence[str],
        with_preprocessing: bool,
    ) -> None: ...

@final
class PoseEstimator:
    def __new__(cls, config: str) -> PoseEstimator: ...
    def fields(self, images: Float, stride: int) -> tuple[PoseArrays, GridTuple]: ...

class Frames(Protocol):
    @property
    def scale(self) -> Float: ...
    @property
    def angle(self) -> Float: ...
    @property
    def confidence(self) -> Float | None: ...
    @property
    def input_confidence(self) -> Float | None: ...
    @property
    def stride(self) -> int: ...
    @property
    def kappa(self) -> float: ...

def pose_defaults() -> str: ...
def get_num_threads() -> int:
    """The number of threads that work runs on."""

def set_num_threads(count: int) -> None:
    """Computes on ``count`` threads from now on, or with 0 on one per core."""

def digits(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def test_digits(
    set: str, name: str, indices: Sequence[int]
) -> tuple[Float, NDArray[np.int64]]: ...
def equivariance_error(
    features: Callable[[Float], list[tuple[str, Float, GridTuple]]],
    images: Float,
    transforms: Sequence[tuple[float, float]],
    radius: float,
    positions: int,
) -> list[tuple[str, float, float, list[float], int]]: ...
def simconv_forward(
    frames: Frames, input: Float, weight: Float, bias: Float | None
) -> Float: ...
def simconv_backward(
    frames: Frames, input: Float, weight: Float, grad: Float, need_input: bool
) -> tuple[Float | None, Float, Float]: ...
def train(options: dict[str, Any], on_report: Report) -> Trained: ...
def resume(path: str | PathLike[str], epochs: int | None, on_report: Report) -> Trained: ...
def evaluate(
    path: str | PathLike[str],
    sets: Sequence[str],
    images: int,
    data: str | None,
    held_out: bool,
    on_report: Report,
) -> tuple[str, list[str]]: ...
def network_config(arch: str, group: str, channels: int, classes: int) -> str: ...
def open_run(path: str | PathLike[str]) -> tuple[str, dict[str, Float]]: ...
def save_run(
    path: str | PathLike[str],
    like: str | PathLike[str] | None,
    network: str,
    weights: dict[str, Float],
) -> None: ...
