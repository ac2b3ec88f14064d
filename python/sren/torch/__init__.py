"""Equivariant layers and the paper's networks as PyTorch modules.

Tensors are ``[n, c, h, w]``, best in ``channels_last`` memory format, float32. On the CPU the
similarity convolution runs in Rust, forward and backward; on any other device in torch itself.

>>> poses = sren.torch.PoseEstimator()  # doctest: +SKIP
>>> conv = sren.torch.SimConv2d(3, 16, 7, stride=2)  # doctest: +SKIP
>>> features = conv(images, poses(images))  # [n, 16, h / 2, w / 2]  # doctest: +SKIP
"""

from .frames import Field, Frames, PoseEstimator
from .heads import OrientationHead, PooledHead
from .layers import MaskedBatchNorm, SimConv2d, sync_batch_norm
from .resnet import SimBlock, SimResNet, network, resnet16, resnet18, wrn16_8
from .weights import from_weights, load, save, to_weights

__all__ = [
    "Field",
    "Frames",
    "MaskedBatchNorm",
    "OrientationHead",
    "PoseEstimator",
    "PooledHead",
    "SimBlock",
    "SimConv2d",
    "SimResNet",
    "from_weights",
    "load",
    "network",
    "resnet16",
    "resnet18",
    "save",
    "sync_batch_norm",
    "to_weights",
    "wrn16_8",
]
