"""The similarity convolution in torch itself, for devices that the native kernels do not know.

Samples are gathered bilinearly in the frame of each position, then multiplied with the weight:
the same formula as in Rust, differentiated by torch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def simconv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    angle: Tensor,
    stride: int,
    kappa: float,
) -> Tensor:
    """``[n, c_in, h, w]`` -> ``[n, c_out, h', w']`` in frames ``[n, h', w']``."""
    n, c_in, height, width = x.shape
    c_out, _, k, _ = weight.shape
    grid = _taps(scale, angle, (height, width), k, stride, kappa)
    # [n, c_in, k k, h' w']
    samples = functional.grid_sample(x, grid, mode="bilinear", align_corners=False)
    # [c_out, c_in k k] x [n, c_in k k, h' w']
    y = weight.reshape(c_out, c_in * k * k) @ samples.flatten(1, 2)
    if bias is not None:
        y = y + bias[:, None]
    return y.reshape(n, c_out, *scale.shape[1:])


def _taps(
    scale: Tensor, angle: Tensor, size: tuple[int, int], k: int, stride: int, kappa: float
) -> Tensor:
    """Where the taps lie, in -1..1 between the outer edges, ``[n, k k, h' w', 2]``."""
    _, rows, columns = scale.shape
    spacing = (kappa * scale).flatten(1)
    # [n, 1, h' w']
    cos, sin = (spacing * f(angle.flatten(1)) for f in (torch.cos, torch.sin))
    cos, sin = cos[:, None], sin[:, None]
    tap = torch.arange(k, device=scale.device, dtype=scale.dtype) - k // 2
    ty, tx = (t.reshape(1, k * k, 1) for t in torch.meshgrid(tap, tap, indexing="ij"))
    x = centres(columns, size[1], stride, scale).repeat(rows) + cos * tx - sin * ty
    y = centres(rows, size[0], stride, scale).repeat_interleave(columns) + sin * tx + cos * ty
    normalised = [(2 * p + 1) / side - 1 for p, side in ((x, size[1]), (y, size[0]))]
    return torch.stack(normalised, dim=-1)


def centres(count: int, side: int, stride: int, like: Tensor) -> Tensor:
    """Rows or columns of a grid in pixels of its input, symmetric about its centre."""
    first = 0.5 * ((side - 1) - stride * (count - 1))
    return first + stride * torch.arange(count, device=like.device, dtype=like.dtype)
