"""Heads: from a feature map to scores per orientation and class."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ._gather import centres
from .frames import Field, Frames

# Powers m of the offset from the centre and k of the frame's direction of each moment.
MOMENTS = ((0, 1), (0, 2), (1, 0), (0, 3), (2, 0), (1, 1), (1, -1))
EPSILON = 1e-3


def pooled(features: Tensor, gate: Tensor | None, maximum: bool) -> Tensor:
    """``[n, c, h, w]`` -> ``[n, c]``: mean weighted by the gate; with ``maximum``, it comes first."""
    n, _, h, w = features.shape
    count = features.new_full((n, 1), h * w) if gate is None else gate.flatten(1).sum(1)[:, None]
    mean = features.sum(dim=(2, 3)) / (count + EPSILON)
    return torch.cat([features.amax(dim=(2, 3)), mean], 1) if maximum else mean


class PooledHead(nn.Module):
    """The paper's head: an invariant pool and a linear layer."""

    upright_prior = 0.0

    def __init__(self, channels: int, classes: int, maximum: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.maximum = maximum
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(channels * (2 if maximum else 1), classes)

    def forward(self, features: Tensor, frames: Frames, step: int) -> Tensor:
        """``[n, c, h, w]`` -> ``[n, 1, classes]``"""
        vector = pooled(features, frames.field(step).confidence, self.maximum)
        scores: Tensor = self.linear(self.dropout(vector))
        return scores[:, None]


class OrientationHead(nn.Module):
    """Scores every class for every orientation of the image.

    From the pooled features and the moments ``mean of f(x) d(x)^m e^(i k Gamma(x))``, with d(x) the
    offset from the centre: they rotate with the image, so that the scores shift by a row when the
    image rotates by a step.
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        orientations: int,
        hidden: int,
        moments: int = 3,
        upright_prior: float = 0.0,
        maximum: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.orientations, self.upright_prior = orientations, upright_prior
        self.maximum = maximum
        self.powers = MOMENTS[:moments]
        self.pooled = nn.Linear(channels * (2 if maximum else 1), hidden)
        self.moments = nn.Linear(2 * moments * channels, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, classes)

    def forward(self, features: Tensor, frames: Frames, step: int) -> Tensor:
        """``[n, c, h, w]`` -> ``[n, orientations, classes]``, upright first."""
        field = frames.field(step)
        vector = pooled(features, field.confidence, self.maximum)
        # [n, 2 moments, h w] x [n, h w, c]
        weights = self._weights(field, frames, step)
        moments = weights @ features.flatten(2).transpose(1, 2)
        rows = self.orientations if frames.group in ("sren", "so2") else 1
        scores: Tensor = self.linear(self.dropout(self._hidden(vector, moments, rows)))
        return scores

    def _hidden(self, vector: Tensor, moments: Tensor, rows: int) -> Tensor:
        """``[n, width]``, ``[n, 2 moments, c]`` -> ``[n, rows, hidden]``."""
        n, _, c = moments.shape
        count = len(self.powers)
        # [n, moments, 2, c], as it is and rotated by a right angle
        upright = moments.reshape(n, count, 2, c)
        aside = torch.stack([-upright[:, :, 1], upright[:, :, 0]], dim=2)
        both = torch.stack([upright, aside], dim=2).flatten(3)
        weight = self.moments.weight.t().reshape(count, 2 * c, -1)
        # [n, moments, 2, 2 c] x [moments, 2 c, hidden] -> [n, 2 moments, hidden]
        parts = torch.einsum("nmpc,mch->nmph", both, weight).flatten(1, 2)
        rotated = self._circle(rows, parts) @ parts
        return torch.relu(rotated + self.pooled(vector)[:, None])

    def _circle(self, rows: int, like: Tensor) -> Tensor:
        """By what each orientation rotates each moment, ``[rows, 2 moments]``."""
        step = 2 * math.pi / self.orientations
        values = [
            part
            for row in range(rows)
            for m, k in self.powers
            for part in (math.cos((m + k) * row * step), math.sin((m + k) * row * step))
        ]
        return like.new_tensor(values).reshape(rows, 2 * len(self.powers))

    def _weights(self, field: Field, frames: Frames, step: int) -> Tensor:
        """The factor of each position in each moment, ``[n, 2 moments, h w]``."""
        _, angle, confidence = field
        gate = (torch.ones_like(angle) if confidence is None else confidence).flatten(1)
        height, width = frames.images.shape[2:]
        h, w = angle.shape[1:]
        # Positions in pixels of the image.
        x = centres(w, width, step, angle).repeat(h)[None]
        y = centres(h, height, step, angle).repeat_interleave(w)[None]
        total = gate.sum(1, keepdim=True) + EPSILON

        def mean(value: Tensor) -> Tensor:
            return (gate * value).sum(1, keepdim=True) / total

        dx, dy = x - mean(x), y - mean(y)
        extent = mean(dx.square() + dy.square()).sqrt() + EPSILON
        offset = torch.complex(dx / extent, dy / extent)
        # The features are gated already.
        weight = (gate > 0) / total
        turn = angle.flatten(1)
        parts = []
        for m, k in self.powers:
            factor = weight * offset**m * torch.polar(torch.ones_like(turn), k * turn)
            parts += [factor.real, factor.imag]
        return torch.stack(parts, 1)


def log_prior(orientations: int, upright_prior: float, like: Tensor) -> Tensor:
    """The logarithm of the prior of every orientation, ``[orientations, 1]``."""
    prior = like.new_full((orientations, 1), (1 - upright_prior) / orientations)
    prior[0] += upright_prior
    return prior.log()


def marginalise(scores: Tensor, upright_prior: float) -> Tensor:
    """Scores ``[n, orientations, classes]`` -> logits ``[n, classes]``."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    return torch.logsumexp(scores + log_prior(scores.shape[1], upright_prior, scores), 1)
