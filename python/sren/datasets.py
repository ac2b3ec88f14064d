"""The bundled MNIST and the paper's test sets as arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from . import _native

COUNT = {"train": 60_000, "test": 10_000}


def mnist(split: str = "test") -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The digits ``[n, 28, 28]`` and their labels ``[n]``; ``split`` is ``"train"`` or ``"test"``."""
    return _native.digits(split)


def srt_mnist(
    set: str = "srt", images: int | Iterable[int] | None = None, split: str = "test"
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Digits on a canvas of 56 pixels, ``[n, 56, 56, 1]`` in 0..1, and their labels ``[n]``.

    ``set`` is ``"upright"``, ``"r"`` (rotated), ``"s"`` (scaled), ``"srt"`` (scaled, rotated, moved),
    ``"ood"`` (scaled, rotated) or ``"aff"`` (by affNIST's ranges): the sets of the paper's Table 1 and
    of ``sren eval``.
    ``images`` is how many, from the first, or which; all by default.
    """
    count = COUNT.get(split, 0)
    if images is None:
        indices = range(count)
    elif isinstance(images, (int, np.integer)):
        if not 0 < images <= max(count, 1):
            raise ValueError(f"images: expected 1 to {count}, got {images}")
        indices = range(int(images))
    else:
        indices = [int(index) for index in images]  # type: ignore[assignment]
        if not indices or min(indices) < 0:
            raise ValueError("images: expected numbers of images, from 0, got none or one below 0")
    return _native.test_digits(set, split, list(indices))
