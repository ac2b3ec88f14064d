"""How far any function of images is from moving with them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._images import batch
from ._model import FeatureMap


class LayerError(NamedTuple):
    """The equivariance error of one feature map."""

    name: str
    error: float
    """``sum |F(T x)(T p) - F(x)(p)|^2 / sum |F(x)(p)|^2``: 0 for an equivariant map."""
    centred: float
    """The same, relative to how much the features vary."""
    by_transform: list[float]
    compared: int
    """Positions compared."""


def equivariance_error(f: Callable[[Any], Any], images: Any, **options: Any) -> float:
    """The largest equivariance error of the feature maps of ``f``.

    ``f`` maps images ``[n, h, w, c]`` (float32) to features ``[n, h', w', c']`` or, for what should
    be invariant, ``[n, c']``; to a :class:`FeatureMap`; or to a mapping of names to these. A
    ``torch.nn.Module`` gets and gives tensors ``[n, c, h, w]``, in evaluation mode.

    >>> sren.equivariance_error(lambda images: images**2, images)  # doctest: +SKIP
    0.0

    The options are those of :func:`equivariance_errors`.
    """
    return max(layer.error for layer in equivariance_errors(f, images, **options))


def equivariance_errors(
    f: Callable[[Any], Any],
    images: Any,
    *,
    angles: Iterable[float] = (90, 180, 270),
    scales: Iterable[float] = (1.0,),
    radius: float | None = None,
    positions: int = 4,
    grid: str = "cell",
) -> list[LayerError]:
    """The equivariance error of every feature map of ``f`` under all ``angles`` and ``scales``.

    ``angles`` are in degrees. Positions within ``radius`` pixels of the centre are compared (0.3
    times the shorter side by default), ``positions`` of them for a transform that does not map the
    grid onto itself. ``grid`` says where features of a strided map lie: ``"cell"`` for the centres
    of the cells, symmetric about the image's centre, ``"corner"`` for every ``stride``-th pixel
    from the first, as an ordinary strided convolution has them.
    """
    pixels = batch(images)
    height, width = pixels.shape[1:3]
    if grid not in ("cell", "corner"):
        raise ValueError(f"grid: expected cell or corner, got {grid}")
    call = _module_call(f) if _is_module(f) else f

    def features(transformed: NDArray[np.float32]) -> list[tuple[str, Any, Any]]:
        found = call(transformed)
        maps = found if isinstance(found, Mapping) else {"output": found}
        return [(str(name), *_map(value, height, width, grid)) for name, value in maps.items()]

    transforms = [(float(scale), math.radians(angle)) for scale, angle in product(scales, angles)]
    if not transforms:
        raise ValueError("equivariance_error: expected at least 1 angle and scale, got none")
    radius = 0.3 * min(height, width) if radius is None else radius
    errors = _native.equivariance_error(features, pixels, transforms, radius, positions)
    return [LayerError(*error) for error in errors]


def _is_module(f: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def _module_call(module: Any) -> Callable[[NDArray[np.float32]], Any]:
    import torch

    parameter = next(iter(module.parameters()), None)
    device = torch.device("cpu") if parameter is None else parameter.device

    def nhwc(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            got = type(value).__name__
            raise ValueError(f"equivariance_error: expected a tensor or a mapping, got {got}")
        return value.permute(0, 2, 3, 1) if value.ndim == 4 else value

    def call(images: NDArray[np.float32]) -> Any:
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                found = module(torch.from_numpy(images).permute(0, 3, 1, 2).to(device))
        finally:
            for part, training in modes:
                part.training = training
        if isinstance(found, Mapping):
            return {name: nhwc(value) for name, value in found.items()}
        return nhwc(found)

    return call


def _map(value: Any, height: int, width: int, kind: str) -> tuple[Any, _native.GridTuple]:
    """Values ``[n, h, w, c]`` in C order, and their grid."""
    if isinstance(value, FeatureMap):
        return np.ascontiguousarray(value.values, dtype=np.float32), value.grid
    if hasattr(value, "detach"):
        value = value.detach().cpu().float()
    values = np.asarray(value, dtype=np.float32)
    if values.ndim == 2:
        values = values[:, None, None, :]
    if values.ndim != 4 or 0 in values.shape:
        expected = "features [n, h, w, c] or [n, c]"
        raise ValueError(f"equivariance_error: expected {expected}, got {list(values.shape)}")
    h, w = values.shape[1:3]
    stride = _stride(height, width, h, w)
    origin = [0.0, 0.0]
    if kind == "cell":
        origin = [0.5 * (width - 1 - stride * (w - 1)), 0.5 * (height - 1 - stride * (h - 1))]
    return np.ascontiguousarray(values), (h, w, float(stride), origin)


def _stride(height: int, width: int, h: int, w: int) -> int:
    """The stride that makes ``h x w`` positions of ``height x width`` pixels."""
    fits = [s for s in range(1, max(height, width) + 1) if (-(-height // s), -(-width // s)) == (h, w)]
    if not fits:
        raise ValueError(
            f"equivariance_error: expected features of {height} x {width} over a stride, got {h} x {w}"
        )
    nearest = round(height / h)
    return nearest if nearest in fits else fits[0]
