"""Run by torchrun: the gradients of a batch that is shared among the processes, saved by the first."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sren
import sren.torch

COUNT = 8


def gradients(rank: int, size: int) -> dict[str, torch.Tensor]:
    """Of the mean loss of COUNT images, of which this process sees every `size`-th."""
    torch.manual_seed(1)
    network = sren.torch.sync_batch_norm(sren.torch.network("blocks", 1, 10))
    network.head.dropout.p = 0.0

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return self.network.loss(images, labels)

    images, labels = sren.datasets.srt_mnist("upright", COUNT)
    x = torch.from_numpy(images[rank::size]).permute(0, 3, 1, 2)
    module = Loss() if size == 1 else DistributedDataParallel(Loss())
    module(x, torch.from_numpy(labels[rank::size])).backward()
    return {name: value.grad for name, value in network.named_parameters()}


if __name__ == "__main__":
    dist.init_process_group("gloo")
    found = gradients(dist.get_rank(), dist.get_world_size())
    if dist.get_rank() == 0:
        torch.save(found, sys.argv[1])
    dist.barrier()
    dist.destroy_process_group()
