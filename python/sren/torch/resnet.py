"""The paper's residual networks, every convolution a similarity convolution."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .. import _native
from .frames import Field, Frames, PoseEstimator
from .heads import OrientationHead, PooledHead, marginalise
from .layers import MaskedBatchNorm, SimConv2d, single_precision

GROUPS = {"Similarity": "sren", "Rotation": "so2", "Scale": "scale", "None": "cnn"}
# Weight of the orientation's cross entropy where the features learn it too, and where the head does.
FEATURE_WEIGHT, HEAD_WEIGHT = 0.5, 0.25


def _active(field: Field, frames: Frames) -> Tensor | None:
    """1 at the positions that are computed, 0 elsewhere; none if all are."""
    if field.confidence is None or not frames.active_only:
        return None
    return (field.confidence > 0).to(field.confidence.dtype)


class SimBlock(nn.Module):
    """``g relu(x + norm(conv(g relu(norm(conv(x))))))`` with 3x3 similarity convolutions, g the gate."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int = 1,
        dilation: int = 1,
        reference_scale: float = 1.0,
        dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        shared: dict[str, Any] = {"bias": False, "backend": backend}
        taps = {"dilation": dilation, "reference_scale": reference_scale, **shared}
        self.conv1 = SimConv2d(in_channels, out_channels, 3, stride, **taps)
        self.norm1 = MaskedBatchNorm(out_channels, relu=True)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = SimConv2d(out_channels, out_channels, 3, **taps)
        self.norm2 = MaskedBatchNorm(out_channels, relu=True)
        self.shortcut: nn.ModuleDict | None = None
        if stride != 1 or in_channels != out_channels:
            conv = SimConv2d(in_channels, out_channels, 1, stride, **shared)
            self.shortcut = nn.ModuleDict({"conv": conv, "norm": MaskedBatchNorm(out_channels)})

    def forward(
        self, x: Tensor, frames: Frames, step: int | None = None, gated: bool = False
    ) -> Tensor:
        """``[n, c_in, h, w]`` -> ``[n, c_out, h / stride, w / stride]``, gated.

        ``step`` is the distance of the input's positions in pixels; ``gated`` says that the input is
        zero where there is no pose, as the output of another block is.
        """
        step = frames.step_of(x) if step is None else step
        given = frames.field(step) if gated else None
        field = frames.field(step * self.conv1.stride)
        active, gate = _active(field, frames), field.confidence
        y = self.norm1(self.conv1.convolve(x, field, frames, given), active, gate)
        y = self.conv2.convolve(self.dropout(y), field, frames, field)
        if self.shortcut is not None:
            conv, norm = self.shortcut["conv"], self.shortcut["norm"]
            x = norm(conv.convolve(x, field, frames, None), active)  # type: ignore[operator]
        out: Tensor = self.norm2(y, active, gate, x)
        return out


class ResidualBackbone(nn.Module):
    """A stem and residual blocks: images and frames -> features and their step."""

    def __init__(self, channels: int, config: dict[str, Any], backend: str) -> None:
        super().__init__()
        for name in ("relative_pose", "poses_per_block"):
            if config.get(name):
                raise ValueError(f"SimResNet: expected a network without {name}, got one with")
        width = config["stem_channels"]
        self.stem = SimConv2d(
            channels,
            width,
            config["stem_kernel"],
            config["stem_stride"],
            bias=False,
            reference_scale=config["stem_reference_scale"],
            backend=backend,
        )
        self.norm = MaskedBatchNorm(width, relu=True)
        blocks = []
        for stage in config["stages"]:
            for index in range(stage["blocks"]):
                block = SimBlock(
                    width,
                    stage["channels"],
                    stage["stride"] if index == 0 else 1,
                    stage["dilation"],
                    config["reference_scale"],
                    config["dropout"],
                    backend,
                )
                blocks.append(block)
                width = stage["channels"]
        self.blocks = nn.ModuleList(blocks)
        self.channels = width

    def forward(self, images: Tensor, frames: Frames) -> tuple[Tensor, int]:
        maps = self.feature_maps(images, frames)
        return list(maps.values())[-1]

    def feature_maps(self, images: Tensor, frames: Frames) -> dict[str, tuple[Tensor, int]]:
        """The features of all layers by name, with their step in pixels."""
        step = self.stem.stride
        field = frames.field(step)
        x = self.stem.convolve(images, field, frames, None)
        x = self.norm(x, _active(field, frames), field.confidence)
        maps = {"stem": (x, step)}
        for index, block in enumerate(self.blocks):
            assert isinstance(block, SimBlock)
            x = block(x, frames, step, gated=True)
            step *= block.conv1.stride
            maps[f"blocks.{index}"] = (x, step)
        return maps


class SimResNet(nn.Module):
    """A residual classifier: images ``[n, c, h, w]`` in 0..1 -> logits ``[n, classes]``.

    ``config`` is that of a run, or of :func:`resnet18` and its like.
    """

    def __init__(self, config: dict[str, Any], backend: str = "auto") -> None:
        super().__init__()
        backbone, head = dict(config["backbone"]), dict(config["head"])
        branched = config.get("canonical") or config.get("log_polar")
        if backbone.pop("kind") != "residual" or branched:
            expected = "a residual network without a branch"
            raise ValueError(f"SimResNet: expected {expected}, got another one")
        self.config = config
        self.classes: int = config["classes"]
        group = GROUPS[config["equivariance"]]
        self.poses = PoseEstimator(group, config["active_only"], **config["pose"])
        self.backbone = ResidualBackbone(config["image_channels"], backbone, backend)
        channels, maximum = self.backbone.channels, head["pool"] == "MaxMean"
        self.head: OrientationHead | PooledHead
        if head["kind"] == "pooled":
            self.head = PooledHead(channels, self.classes, maximum, head["dropout"])
        else:
            self.head = OrientationHead(
                channels,
                self.classes,
                head["orientations"],
                head["hidden"],
                head["moments"],
                head["upright_prior"],
                maximum,
                head["dropout"],
            )

    def forward(self, images: Tensor) -> Tensor:
        return marginalise(self.scores(images), self.head.upright_prior)

    def scores(self, images: Tensor) -> Tensor:
        """Log-scores ``[n, orientations, classes]``, upright first."""
        with single_precision(images):
            images = images.float()
            frames = self.poses(images)
            scores: Tensor = self.head(*self._features(images, frames))
            return scores

    def _features(self, images: Tensor, frames: Frames) -> tuple[Tensor, Frames, int]:
        features, step = self.backbone(images, frames)
        return features, frames, step

    def feature_maps(self, images: Tensor) -> dict[str, Tensor]:
        """The equivariant features of all layers by name, ``[n, c, h, w]``."""
        images = images.float()
        maps = self.backbone.feature_maps(images, self.poses(images))
        return {name: features for name, (features, _) in maps.items()}

    def loss(
        self,
        images: Tensor,
        targets: Tensor,
        angles: Tensor | None = None,
        class_weights: Tensor | None = None,
    ) -> Tensor:
        """The training loss: cross entropy of the class and, with an orientation head, of the
        orientation given the class.

        ``angles`` are those by which images were rotated, in radians ``[n]``. Leave them out if all are
        upright: the orientation then trains the head only.
        """
        with single_precision(images):
            images = images.float()
            features, frames, step = self._features(images, self.poses(images))
            scores = self.head(features, frames, step)
            loss = functional.cross_entropy(marginalise(scores, 0.0), targets, class_weights)
            if scores.shape[1] == 1:
                return loss
            # From upright images features would learn it from the pixel lattice: the head alone does.
            weight = FEATURE_WEIGHT
            if angles is None:
                scores, weight = self.head(features.detach(), frames, step), HEAD_WEIGHT
                angles = torch.zeros(len(images), device=images.device)
            return loss + weight * orientation_loss(scores, targets, angles)


def orientation_loss(scores: Tensor, targets: Tensor, angles: Tensor) -> Tensor:
    """The cross entropy of the orientation, given the true class."""
    n, orientations, _ = scores.shape
    own = scores[torch.arange(n, device=scores.device), :, targets].log_softmax(1)
    steps = -angles / (2 * torch.pi) * orientations
    row = torch.arange(orientations, device=scores.device, dtype=scores.dtype)
    away = (row - steps[:, None].to(scores.dtype)).remainder(orientations)
    # Half for the nearest, the rest for its neighbours: handwriting is not exactly upright.
    upright = (0.5 - 0.25 * torch.minimum(away, orientations - away)).clamp(min=0)
    return -(own * upright).sum(1).mean()


def network(
    arch: str, channels: int, classes: int, model: str = "sren", backend: str = "auto"
) -> SimResNet:
    """The residual network that ``sren train --arch NAME --model GROUP`` trains, with new weights."""
    return SimResNet(json.loads(_native.network_config(arch, model, channels, classes)), backend)


def resnet18(
    channels: int = 1, classes: int = 10, model: str = "sren", backend: str = "auto"
) -> SimResNet:
    """The paper's ResNet-18, for digits."""
    return network("resnet18", channels, classes, model, backend)


def resnet16(
    channels: int = 3, classes: int = 10, model: str = "sren", backend: str = "auto"
) -> SimResNet:
    """The paper's ResNet-16, for photographs."""
    return network("resnet16", channels, classes, model, backend)


def wrn16_8(
    channels: int = 3, classes: int = 10, model: str = "sren", backend: str = "auto"
) -> SimResNet:
    """The paper's wide residual network of depth 16 and width 8, with dropout, for photographs."""
    return network("wrn16-8", channels, classes, model, backend)
