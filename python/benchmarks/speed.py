"""Speed as ratios, one thread, each measured in the same run: minimum of several repetitions, in time
of the processor, so that other programs count little.

    python python/benchmarks/speed.py [--repetitions N]

`SimConv2d` forward and backward beside `nn.Conv2d` in channels_last, `deform_conv2d` of torchvision and
the path of torch itself; and `model.predict` beside the command `sren predict`.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torchvision.ops import deform_conv2d

import sren
import sren.torch

ROOT = Path(__file__).parents[2]
BATCH, SIDE = 16, 28


def best(works: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """The least processor time of each, in seconds; all take their turn in every repetition."""
    times = {name: math.inf for name in works}
    for repetition in range(repetitions + 1):
        for name, work in works.items():
            begin = time.process_time()
            work()
            if repetition > 0:
                times[name] = min(times[name], time.process_time() - begin)
    return times


def smooth_field(n: int) -> sren.torch.Field:
    """Poses that change slowly from position to position, as those of images do."""
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    scale = (1.2 + 0.4 * torch.sin(0.2 * x + 0.1 * y)).expand(n, SIDE, SIDE).contiguous()
    angle = (0.1 * x - 0.05 * y).float().expand(n, SIDE, SIDE).contiguous()
    return sren.torch.Field(scale, angle, None)


def offsets(field: sren.torch.Field) -> torch.Tensor:
    """The same taps as offsets of `deform_conv2d`, `[n, 18, h, w]`."""
    tap = torch.arange(-1.0, 2.0)
    ty, tx = (t.reshape(-1) for t in torch.meshgrid(tap, tap, indexing="ij"))
    cos = (field.scale * field.angle.cos())[..., None]
    sin = (field.scale * field.angle.sin())[..., None]
    offset = torch.stack([sin * tx + cos * ty - ty, cos * tx - sin * ty - tx], -1)
    return offset.flatten(3).permute(0, 3, 1, 2).contiguous()


def layers(channels: int, repetitions: int) -> None:
    torch.manual_seed(1)
    field = smooth_field(BATCH)
    offset = offsets(field)
    frames = sren.torch.PoseEstimator(active_only=False)(torch.zeros(BATCH, 1, SIDE, SIDE))
    plain = nn.Conv2d(channels, channels, 3, padding=1).to(memory_format=torch.channels_last)
    rust = sren.torch.SimConv2d(channels, channels, 3, backend="rust")
    gather = sren.torch.SimConv2d(channels, channels, 3, backend="torch")
    last = torch.randn(BATCH, channels, SIDE, SIDE).to(memory_format=torch.channels_last)
    grad = torch.randn_like(last)
    inputs = {"last": last.clone().requires_grad_(), "first": last.contiguous().requires_grad_()}
    weight, bias = plain.weight.detach().contiguous().requires_grad_(), plain.bias

    def both(forward: Callable[[], torch.Tensor]) -> Callable[[], None]:
        return lambda: forward().backward(grad)

    times = best(
        {
            "Conv2d": both(lambda: plain(inputs["last"])),
            "SimConv2d": both(lambda: rust.convolve(inputs["last"], field, frames, None)),
            "torch": both(lambda: gather.convolve(inputs["first"], field, frames, None)),
        },
        repetitions,
    )
    slow = best(
        {"deform": both(lambda: deform_conv2d(inputs["first"], offset, weight, bias, padding=1))}, 2
    )
    deform = slow["deform"]
    print(f"{channels} channels, {BATCH} x {SIDE} x {SIDE}, forward and backward:")
    print(f"  SimConv2d / Conv2d channels_last   {times['SimConv2d'] / times['Conv2d']:6.2f}")
    print(f"  deform_conv2d / SimConv2d          {deform / times['SimConv2d']:6.1f}")
    print(f"  path of torch / deform_conv2d      {times['torch'] / deform:6.2f}")


def command_seconds(command: Path, images: int) -> float:
    """Processor time of `sren predict` for the first so many digits."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [command, "predict", "mnist-sren", f"mnist:0-{images - 1}", "--threads", "1"]
    subprocess.run(arguments, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def predictions(repetitions: int) -> None:
    """Images per second of `model.predict` and of the command, without its start."""
    command = ROOT / "target/release/sren"
    if not command.exists():
        print("predict: no command, build it with `cargo build --release`")
        return
    model = sren.load()
    few, many = 64, 704
    digits = sren.datasets.mnist()[0][few:many, :, :, None]

    def ours() -> None:
        for start in range(0, len(digits), 64):
            model.predict(digits[start : start + 64])

    python = best({"predict": ours}, repetitions)["predict"]
    rust = [command_seconds(command, many) - command_seconds(command, few) for _ in range(repetitions)]
    print("predict, batches of 64, images per second:")
    print(f"  Python / command                   {min(rust) / python:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed as ratios")
    parser.add_argument("--repetitions", type=int, default=10)
    repetitions = parser.parse_args().repetitions
    torch.set_num_threads(1)
    sren.set_num_threads(1)
    for channels in (64, 128):
        layers(channels, repetitions)
    predictions(max(3, repetitions // 3))


if __name__ == "__main__":
    main()
