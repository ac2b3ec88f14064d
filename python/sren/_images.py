"""From what users call images to what the native module takes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._native import ImageArgument


def arguments(images: Any) -> list[ImageArgument]:
    """One argument per image: an array ``[h, w, c]`` of bytes or floats, or a name."""
    if isinstance(images, (list, tuple)):
        found = [_one(image) for image in images]
    elif _is_array(images) and np.ndim(images) == 4:
        found = [_array(image) for image in _values(images)]
    else:
        found = [_one(images)]
    if not found:
        raise ValueError("images: expected at least 1 image, got none")
    return found


def batch(images: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Images of one size as one array ``[n, h, w, c]`` of floats in 0..1, as they are."""
    found = arguments(images)
    if any(isinstance(image, str) for image in found):
        raise ValueError("images: expected arrays or PIL images, got a path")
    shapes = {np.shape(image) for image in found}
    if len(shapes) > 1:
        raise ValueError(f"images: expected images of one size, got {sorted(shapes)}")
    floats: Iterable[Any] = (
        np.float32(image) / np.float32(255) if image.dtype == np.uint8 else image  # type: ignore[union-attr]
        for image in found
    )
    return np.ascontiguousarray(np.stack(list(floats)), dtype=np.float32)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not _is_pil(value)


def _is_pil(value: Any) -> bool:
    return hasattr(value, "getbands") and hasattr(value, "convert")


def _one(image: Any) -> ImageArgument:
    if isinstance(image, (str, os.PathLike)):
        return os.fsdecode(image)
    if _is_pil(image):
        return _array(_pil_values(image))
    if _is_array(image):
        return _array(_values(image))
    raise ValueError(
        f"image: expected an array, a PIL image or a path, got {type(image).__name__}"
    )


def _pil_values(image: Any) -> np.ndarray[Any, Any]:
    """As the same image is read from a file: upright by its EXIF data, transparent parts black."""
    from PIL import ImageOps

    if image.mode.startswith(("I", "F")):
        raise ValueError(f"image: expected 8 bits per channel, got PIL mode {image.mode}")
    image = ImageOps.exif_transpose(image)
    if "A" in image.getbands() or "transparency" in image.info:
        grey = image.mode in ("1", "L", "LA")
        values = np.asarray(image.convert("LA" if grey else "RGBA"), np.float32) / np.float32(255)
        return values[..., :-1] * values[..., -1:]
    return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _values(image: Any) -> np.ndarray[Any, Any]:
    if getattr(image, "requires_grad", False):
        image = image.detach()
    return np.asarray(image)


def _array(values: np.ndarray[Any, Any]) -> ImageArgument:
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or values.shape[2] not in (1, 3):
        raise ValueError(
            "image: expected [h, w], [h, w, 1] or [h, w, 3] (batches: [n, h, w, c]), "
            f"got {list(values.shape)}"
        )
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == np.bool_ or values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=np.float32)
    raise ValueError(f"image: expected uint8 or floats in 0..1, got {values.dtype}")
