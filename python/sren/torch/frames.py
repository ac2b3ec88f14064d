"""Local frames: the pose estimator as the first stage of a network."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .._model import pose_config, pose_estimator
from . import _ops

GROUPS = ("sren", "so2", "scale", "cnn")


class Field(NamedTuple):
    """The poses of one grid, each ``[n, h, w]``; without a confidence, it is 1 everywhere."""

    scale: Tensor
    angle: Tensor
    confidence: Tensor | None


class Frames:
    """The local frames of one batch of images. Made by :class:`PoseEstimator`.

    Poses are estimated when a layer first needs their grid, and shared by all layers. No gradient
    flows through them.
    """

    def __init__(self, images: Tensor, config: str, group: str, active_only: bool) -> None:
        self.images = images.detach()
        self.config = config
        self.group = group
        self.active_only = active_only and group != "cnn"
        self._fields: dict[int, Field] = {}

    def field(self, step: int) -> Field:
        """The poses at every ``step``-th pixel."""
        if step not in self._fields:
            self._fields[step] = self._estimate(step)
        return self._fields[step]

    def _estimate(self, step: int) -> Field:
        n, _, height, width = self.images.shape
        if self.group == "cnn":
            shape = (n, -(-height // step), -(-width // step))
            ones = torch.ones(shape, dtype=torch.float32, device=self.images.device)
            return Field(ones, torch.zeros_like(ones), None)
        scale, angle, confidence = _ops.poses(self.images, step, self.config)
        if self.group == "so2":
            scale = torch.ones_like(scale)
        if self.group == "scale":
            angle = torch.zeros_like(angle)
        return Field(scale, angle, confidence)

    def step_of(self, x: Tensor) -> int:
        """The step, in pixels, of a feature map of the size of ``x``, if its size determines it."""
        height, width = self.images.shape[2:]
        h, w = x.shape[2:]
        # -(-side // step) == count  <=>  side / count <= step < side / (count - 1)
        least = max(-(-height // h), -(-width // w)) if h > 0 and w > 0 else 0
        fits = [
            step
            for step in range(max(least, 1), max(height, width) + 1)
            if (-(-height // step), -(-width // step)) == (h, w)
        ]
        if len(fits) != 1:
            expected = f"features of images of {height} x {width} on one grid"
            got = f"{h} x {w}, which fits steps {fits}: pass step=" if fits else f"{h} x {w}"
            raise ValueError(f"SimConv2d: expected {expected}, got {got}")
        return fits[0]


class PoseEstimator(nn.Module):
    """Reads a local scale and orientation at every position of images ``[n, c, h, w]`` in 0..1.

    ``group`` is ``"sren"`` (rotation and scale), ``"so2"`` (rotation), ``"scale"`` or ``"cnn"``
    (none). With ``active_only``, layers compute only where there is a pose. ``parameters`` are those
    of :func:`sren.poses`. It has nothing to learn, and always runs on the CPU.
    """

    def __init__(self, group: str = "sren", active_only: bool = True, **parameters: Any) -> None:
        super().__init__()
        if group not in GROUPS:
            raise ValueError(f"PoseEstimator: expected sren, so2, scale or cnn, got {group}")
        self.group = group
        self.active_only = active_only
        self.config = pose_config(**parameters)
        if json.loads(self.config)["poses"] != 1:
            raise ValueError("PoseEstimator: expected 1 pose per position, got more")
        pose_estimator(self.config)

    def forward(self, images: Tensor) -> Frames:
        """The frames of images ``[n, c, h, w]``."""
        if images.ndim != 4 or not images.is_floating_point():
            got = f"{list(images.shape)} of {images.dtype}"
            raise ValueError(f"PoseEstimator: expected floats [n, c, h, w], got {got}")
        if images.shape[0] == 0:
            raise ValueError("PoseEstimator: expected at least 1 image, got none")
        return Frames(images, self.config, self.group, self.active_only)

    def extra_repr(self) -> str:
        return f"group={self.group}, active_only={self.active_only}"
