"""Trains a SimResNet on upright digits in several processes, and goes on after one of them dies.

On one machine with two processes:

    torchrun --nproc-per-node=2 --max-restarts=3 examples/train_ddp.py --out runs/ddp

The processes talk by gloo on CPUs and by NCCL on GPUs. The first one writes a checkpoint after every
epoch; if a process ends, torchrun starts all of them again, and they go on from there. At the end the
folder holds a run for `sren predict`.
"""

from __future__ import annotations

import argparse
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

import sren
import sren.torch


class TrainingLoss(nn.Module):
    """DistributedDataParallel watches `forward`: here it gives the loss of a batch."""

    def __init__(self, network: sren.torch.SimResNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.network.loss(images, labels)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="resnet18", help="resnet18, or blocks for a quick try")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=32, help="images per step, of all processes")
    parser.add_argument("--rate", type=float, default=0.004, help="learning rate")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds to wait for another process")
    parser.add_argument("--out", type=Path, default=Path("runs/ddp"))
    return parser.parse_args()


def save_checkpoint(path: Path, epoch: int, network: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Written beside and renamed: whoever reads it finds a whole file."""
    state = {"epoch": epoch, "network": network.state_dict(), "optimiser": optimiser.state_dict()}
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def main() -> None:
    options = read_arguments()
    gpu = torch.cuda.is_available()
    timeout = timedelta(seconds=options.timeout)
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    # Processes that were started again must not read the addresses of those before them.
    store = dist.PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    backend = "nccl" if gpu else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    threads = max(1, (os.cpu_count() or 1) // int(os.environ["LOCAL_WORLD_SIZE"]))
    torch.set_num_threads(threads)
    sren.set_num_threads(threads)

    torch.manual_seed(1)
    network = sren.torch.network(options.arch, channels=1, classes=10)
    # Mean and variance over the whole batch: the gradients are those of one process.
    module = TrainingLoss(sren.torch.sync_batch_norm(network)).to(device)
    model = DistributedDataParallel(module)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate)

    options.out.mkdir(parents=True, exist_ok=True)
    path, first = options.out / "checkpoint.pt", 1
    if path.exists():
        state = torch.load(path, map_location=device, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        first = state["epoch"] + 1
    print(f"rank {rank} of {size}: process {os.getpid()}, from epoch {first}", flush=True)

    images, labels = sren.datasets.srt_mnist("upright", options.images, split="train")
    share = options.batch // size
    steps = len(images) // (share * size)
    for epoch in range(first, options.epochs + 1):
        network.train()
        total = torch.zeros((), device=device)
        # What is drawn depends on epoch and rank alone: a run that goes on is the same run.
        torch.manual_seed(epoch * size + rank)
        order = np.random.default_rng(epoch).permutation(len(images))
        for step in range(steps):
            start = step * share * size + rank * share
            own = order[start : start + share]
            # [n, h, w, c] -> [n, c, h, w], channels_last
            batch = torch.from_numpy(images[own]).permute(0, 3, 1, 2).to(device)
            loss = model(batch, torch.from_numpy(labels[own]).to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            save_checkpoint(path, epoch, network, optimiser)
            print(f"epoch {epoch}: loss {total.item() / (steps * size):.4f}", flush=True)
        # No process begins the next epoch before the checkpoint is there.
        dist.barrier()

    if rank == 0:
        run = options.out / "run"
        sren.torch.save(network.cpu(), run)
        print(f"run: {run}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
