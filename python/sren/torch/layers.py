"""Equivariant layers: the similarity convolution, and batch norm over active positions."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
import torch.distributed
from torch import Tensor, nn

from . import _gather, _ops
from .frames import Field, Frames

BACKENDS = ("auto", "rust", "torch")


class SimConv2d(nn.Module):
    """A convolution in the local frame of each position.

    ``out(x) = sum_t f(x + d Lambda(x) / Lambda_0 R(Gamma(x)) t) phi(t)``, bilinear. The arguments are
    those of ``nn.Conv2d``; ``reference_scale`` is Lambda_0, the scale in pixels of a pose whose taps
    lie ``dilation`` steps of the input's grid apart. The output grid has every ``stride``-th cell of
    the input's, symmetric about its centre; there is no padding to choose.

    ``backend`` is ``"rust"``, ``"torch"`` (gather and matmul), or ``"auto"``: Rust on the CPU, torch
    elsewhere. The weight is ``[c_out, c_in, k, k]``, in memory as the Rust kernels take it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        dilation: int = 1,
        bias: bool = True,
        reference_scale: float = 1.0,
        backend: str = "auto",
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            _check(1 <= value <= 1 << 20, f"{name} of 1 to 2^20", value)
        _check(kernel_size % 2 == 1 and 0 < kernel_size < 256, "an odd kernel size", kernel_size)
        _check(stride >= 1, "a stride of at least 1", stride)
        _check(dilation >= 1, "a dilation of at least 1", dilation)
        good = math.isfinite(reference_scale) and reference_scale > 0
        _check(good, "a finite reference scale > 0", reference_scale)
        _check(backend in BACKENDS, "the backend auto, rust or torch", backend)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.reference_scale, self.backend = float(reference_scale), backend
        shape = (kernel_size, kernel_size, in_channels, out_channels)
        kernel = torch.empty(shape, dtype=torch.float32, device=device)
        self.weight = nn.Parameter(kernel.permute(3, 2, 0, 1))
        self.bias = None
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels, dtype=torch.float32, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights by He's rule; biases begin at 0."""
        fan_in = self.kernel_size**2 * self.in_channels
        nn.init.normal_(self.weight, std=math.sqrt(2 / fan_in))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, frames: Frames, step: int | None = None) -> Tensor:
        """``[n, c_in, h, w]`` -> ``[n, c_out, h / stride, w / stride]``, zero where there is no pose.

        ``step`` is the distance of the input's positions in pixels of the image; without it, the
        size of the input must determine it.
        """
        step = frames.step_of(x) if step is None else step
        field = frames.field(step * self.stride)
        y = self.convolve(x, field, frames, None)
        return y if field.confidence is None else y * field.confidence[:, None]

    def convolve(
        self, x: Tensor, field: Field, frames: Frames, input_field: Field | None
    ) -> Tensor:
        """The convolution in the poses of the output grid, without a gate.

        With the poses of the input grid, the input is zero where these have no confidence.
        """
        if x.ndim != 4 or x.shape[1] != self.in_channels or not x.is_floating_point():
            expected = f"floats [n, {self.in_channels}, h, w]"
            raise ValueError(f"SimConv2d: expected {expected}, got {list(x.shape)} of {x.dtype}")
        grid = (x.shape[0], -(-x.shape[2] // self.stride), -(-x.shape[3] // self.stride))
        if tuple(field.scale.shape) != grid:
            expected = f"frames of {list(grid)}"
            raise ValueError(f"SimConv2d: expected {expected}, got {list(field.scale.shape)}")
        reference = self.reference_scale if frames.group in ("sren", "scale") else 1.0
        kappa = self.dilation / reference
        with single_precision(x):
            x, weight = x.float(), self.weight.float()
            bias = None if self.bias is None else self.bias.float()
            if not self._native_kernels(x):
                return _gather.simconv(
                    x, weight, bias, field.scale, field.angle, self.stride, kappa
                )
            active = field.confidence if frames.active_only else None
            active_input = None
            if input_field is not None and frames.active_only:
                active_input = input_field.confidence
            frame = (field.scale, field.angle, active, active_input)
            y: Tensor = _ops.simconv(x, weight, bias, *frame, self.stride, kappa)
            return y

    def _native_kernels(self, x: Tensor) -> bool:
        if self.backend == "rust" and x.device.type != "cpu":
            raise ValueError(f"SimConv2d: expected a tensor on the CPU, got {x.device}")
        return x.device.type == "cpu" and self.backend != "torch"

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, dilation={self.dilation}, "
            f"reference_scale={self.reference_scale:g}, bias={self.bias is not None}"
        )


def single_precision(x: Tensor) -> AbstractContextManager[object]:
    """Without autocast on the device of ``x``."""
    kind = x.device.type
    known = torch.amp.is_autocast_available(kind)
    return torch.autocast(kind, enabled=False) if known else nullcontext()


def _check(good: bool, expected: str, got: object) -> None:
    if not good:
        raise ValueError(f"SimConv2d: expected {expected}, got {got}")


class MaskedBatchNorm(nn.Module):
    """``gate relu(gamma (x - mean) / sqrt(variance + eps) + beta + residual)``.

    ReLU, gate and residual are optional. With active positions, mean and variance are theirs, and the
    output is zero elsewhere. ``sync`` takes them over all processes of ``torch.distributed``.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, relu: bool = False
    ) -> None:
        super().__init__()
        self.channels, self.eps, self.momentum, self.relu = channels, eps, momentum, relu
        self.sync = False
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(
        self,
        x: Tensor,
        active: Tensor | None = None,
        gate: Tensor | None = None,
        residual: Tensor | None = None,
    ) -> Tensor:
        """``[n, c, h, w]``, with ``active`` (0 or 1) and ``gate`` as ``[n, h, w]``."""
        with single_precision(x):
            x = x.float()
            if self.training:
                mean, variance = self._statistics(x, active)
            else:
                mean, variance = self.running_mean, self.running_var
            factor = self.weight * torch.rsqrt(variance + self.eps)
            y = x * _broad(factor) + _broad(self.bias - mean * factor)
            if residual is not None:
                y = y + residual
            if self.relu:
                y = torch.relu(y)
            mask = gate if gate is not None else active
            return y if mask is None else y * mask[:, None]

    def _statistics(self, x: Tensor, active: Tensor | None) -> tuple[Tensor, Tensor]:
        # [n, h, w, c]: channels_last memory is read as it lies.
        rows = x.permute(0, 2, 3, 1)
        mask = None if active is None else active[..., None]
        count = x.new_tensor(x.numel() / self.channels) if mask is None else mask.sum()
        total = self._sum(_masked(rows, mask))
        if self.sync:
            both = _all_sum(torch.cat([total, count.detach().reshape(1)]))
            total, count = both[:-1], both[-1]
        divisor = count.detach().clamp(min=1)
        mean = total / divisor
        squares = self._sum(_masked((rows - mean).square(), mask))
        variance = (_all_sum(squares) if self.sync else squares) / divisor
        with torch.no_grad():
            # A batch without any active position says nothing.
            part = self.momentum * (count > 0).to(x.dtype)
            self.running_mean += part * (mean.detach() - self.running_mean)
            self.running_var += part * (variance.detach() - self.running_var)
        return mean, variance

    @staticmethod
    def _sum(rows: Tensor) -> Tensor:
        return rows.sum(dim=(0, 1, 2))

    def extra_repr(self) -> str:
        return f"{self.channels}, relu={self.relu}, sync={self.sync}"


def _masked(rows: Tensor, mask: Tensor | None) -> Tensor:
    return rows if mask is None else rows * mask


def _broad(values: Tensor) -> Tensor:
    return values[None, :, None, None]


def _all_sum(values: Tensor) -> Tensor:
    """The sum over all processes, through which gradients flow."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return values
    from torch.distributed.nn.functional import all_reduce

    total: Tensor = all_reduce(values.contiguous())  # type: ignore[no-untyped-call]
    return total


M = TypeVar("M", bound=nn.Module)


def sync_batch_norm(module: M) -> M:
    """``module``, whose batch norms take mean and variance over all processes from now on."""
    for part in module.modules():
        if isinstance(part, MaskedBatchNorm):
            part.sync = True
    return module
