"""The native kernels as operators of torch, with their gradients and shapes.

``torch.compile`` sees each as one node of the graph.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from .. import _native
from .._model import pose_estimator


def _rows(tensor: Tensor) -> Any:
    """``[n, c, h, w]`` as an array ``[n, h, w, c]``; copied only if it is not channels_last."""
    return tensor.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _kernel(weight: Tensor) -> Any:
    """``[c_out, c_in, k, k]`` as an array ``[k, k, c_in, c_out]``, which it is in memory."""
    return weight.detach().permute(2, 3, 1, 0).contiguous().numpy()


def _plain(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().contiguous().numpy()


def _channels_last(array: Any) -> Tensor:
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def _frames(
    scale: Tensor,
    angle: Tensor,
    confidence: Tensor | None,
    input_confidence: Tensor | None,
    stride: int,
    kappa: float,
) -> Any:
    return SimpleNamespace(
        scale=_plain(scale),
        angle=_plain(angle),
        confidence=_plain(confidence),
        input_confidence=_plain(input_confidence),
        stride=stride,
        kappa=kappa,
    )


@torch.library.custom_op("sren::poses", mutates_args=())
def poses(images: Tensor, stride: int, config: str) -> tuple[Tensor, Tensor, Tensor]:
    """Scale, angle and confidence ``[n, h, w]`` of images ``[n, c, H, W]``; computed on the CPU."""
    estimator = pose_estimator(config)
    (scale, angle, confidence), _ = estimator.fields(_rows(images.cpu().float()), stride)
    to = images.device
    return (
        torch.from_numpy(scale).to(to),
        torch.from_numpy(angle).to(to),
        torch.from_numpy(confidence).to(to),
    )


@poses.register_fake
def _(images: Tensor, stride: int, config: str) -> tuple[Tensor, Tensor, Tensor]:
    n, _, height, width = images.shape
    shape = (n, -(-height // stride), -(-width // stride))
    one = torch.empty(shape, dtype=torch.float32, device=images.device)
    return one, torch.empty_like(one), torch.empty_like(one)


@torch.library.custom_op("sren::simconv", mutates_args=(), device_types="cpu")
def simconv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    angle: Tensor,
    confidence: Tensor | None,
    input_confidence: Tensor | None,
    stride: int,
    kappa: float,
) -> Tensor:
    """``[n, c_in, h, w]`` -> ``[n, c_out, h', w']`` in frames ``[n, h', w']``."""
    frames = _frames(scale, angle, confidence, input_confidence, stride, kappa)
    return _channels_last(
        _native.simconv_forward(frames, _rows(x), _kernel(weight), _plain(bias))
    )


@simconv.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    angle: Tensor,
    confidence: Tensor | None,
    input_confidence: Tensor | None,
    stride: int,
    kappa: float,
) -> Tensor:
    n, _, height, width = x.shape
    shape = (n, -(-height // stride), -(-width // stride), weight.shape[0])
    return x.new_empty(shape).permute(0, 3, 1, 2)


@torch.library.custom_op("sren::simconv_backward", mutates_args=(), device_types="cpu")
def simconv_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    angle: Tensor,
    confidence: Tensor | None,
    input_confidence: Tensor | None,
    stride: int,
    kappa: float,
    need_input: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by input (empty if not needed), weight and bias."""
    frames = _frames(scale, angle, confidence, input_confidence, stride, kappa)
    by_input, by_weight, by_bias = _native.simconv_backward(
        frames, _rows(x), _kernel(weight), _rows(grad), need_input
    )
    return (
        x.new_empty(0) if by_input is None else _channels_last(by_input),
        torch.from_numpy(by_weight).permute(3, 2, 0, 1),
        torch.from_numpy(by_bias),
    )


@simconv_backward.register_fake
def _(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    angle: Tensor,
    confidence: Tensor | None,
    input_confidence: Tensor | None,
    stride: int,
    kappa: float,
    need_input: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    n, c_in, height, width = x.shape
    c_out, _, k, _ = weight.shape
    by_input = x.new_empty(n, height, width, c_in).permute(0, 3, 1, 2)
    return (
        by_input if need_input else x.new_empty(0),
        x.new_empty(k, k, c_in, c_out).permute(3, 2, 0, 1),
        x.new_empty(c_out),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, scale, angle, confidence, input_confidence, stride, kappa = inputs
    ctx.save_for_backward(x, weight, scale, angle, confidence, input_confidence)
    ctx.geometry = (stride, kappa)
    ctx.has_bias = bias is not None


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, *frames = ctx.saved_tensors
    need_input = ctx.needs_input_grad[0]
    by_input, by_weight, by_bias = simconv_backward(
        grad, x, weight, *frames, *ctx.geometry, need_input
    )
    return (
        by_input if need_input else None,
        by_weight if ctx.needs_input_grad[1] else None,
        by_bias if ctx.has_bias else None,
        *[None] * 6,
    )


simconv.register_autograd(_backward, setup_context=_setup)
