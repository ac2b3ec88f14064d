"""Weights between torch and runs, both ways.

Runs name a parameter by its place (docs/weights.md). Kernels are ``[k, k, c_in, c_out]`` there and
``[c_out, c_in, k, k]`` here, linear layers are transposed, and batch norm has gamma and beta.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import _native
from .layers import MaskedBatchNorm, SimConv2d
from .resnet import SimResNet

NORM = {"weight": "gamma", "bias": "beta"}


def _entries(network: nn.Module) -> dict[str, tuple[Tensor, tuple[int, ...]]]:
    """Every parameter and running average by its name in a run, and the order of its axes there."""
    entries = {}
    for path, module in network.named_modules():
        if not isinstance(module, (SimConv2d, MaskedBatchNorm, nn.Linear)):
            continue
        for name, tensor in module.state_dict(keep_vars=True).items():
            there = NORM.get(name, name) if isinstance(module, MaskedBatchNorm) else name
            order = {1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}[tensor.ndim]
            entries[f"{path}.{there}"] = (tensor, order)
    return entries


def to_weights(network: SimResNet) -> dict[str, NDArray[np.float32]]:
    """A copy of the weights of a network, as ``model.safetensors`` of a run has them."""
    return {
        name: np.array(tensor.detach().permute(order).cpu().float(), order="C")
        for name, (tensor, order) in _entries(network).items()
    }


def from_weights(network: SimResNet, weights: dict[str, Any]) -> SimResNet:
    """``network`` with the weights of a run; every one must be there, in its shape."""
    entries = _entries(network)
    if entries.keys() != weights.keys():
        wrong = sorted(entries.keys() ^ weights.keys())
        raise ValueError(f"weights: expected those of the network, got others: {wrong[0]}")
    with torch.no_grad():
        for name, (tensor, order) in entries.items():
            given = torch.as_tensor(weights[name])
            expected = [tensor.shape[axis] for axis in order]
            if list(given.shape) != expected:
                raise ValueError(f"{name}: expected {expected}, got {list(given.shape)}")
            tensor.copy_(given.permute(tuple(np.argsort(order))))
    return network


def load(run: str | os.PathLike[str], backend: str = "auto") -> SimResNet:
    """The network of a run with its weights, in evaluation mode.

    It sees images as :meth:`sren.Model.preprocess` gives them. Only residual networks without a
    branch: resnet18, resnet16, wrn16-8, blocks.
    """
    config, weights = _native.open_run(run)
    return from_weights(SimResNet(json.loads(config), backend), weights).eval()


def save(
    network: SimResNet,
    path: str | os.PathLike[str],
    like: str | os.PathLike[str] | None = None,
) -> None:
    """Writes the weights into the run in ``path``, for ``sren predict`` and :func:`sren.load`.

    If there is no run yet, it is made: like the run ``like``, or one on digits, for a network of one
    channel and ten classes.
    """
    _native.save_run(path, like, json.dumps(network.config), to_weights(network))
