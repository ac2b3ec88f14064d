"""The similarity convolution beside torch's conv2d and torchvision's deform_conv2d, and a training
step of our ResNet-18 beside torch's.

    pip install torch torchvision
    python scripts/compare_torch.py [--threads 1] [--repetitions 15] [--json]

One run: the Rust program (started here, built if needed) and torch take turns pass by pass, and
the least time of each counts. A batch of 32 images; tap tables and offsets are made beforehand;
gradients of weight, bias and (but in the stem) input. `forward` is measured without recording
gradients. Each line shows how many times as long our kernel on slices (`kernel`) and our Burn
module under autodiff (`module`) take as torch's plain convolution, and how many times as long
deform_conv2d takes as they do.

Then whole training steps on digits of 56x56, Adam included: torchvision's resnet18, channels last, its
max pool replaced by a stem of stride 4, as in the paper's figure of 0.12 GFLOP, and ours as SREN and
as a plain CNN.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 32
# Both sides reuse the memory they free: torch by these settings of glibc, ours by its allocator.
KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--layers", default="", help="numbers of the layers to measure: 0,2, or none")
    parser.add_argument("--batches", default="32,128", help="batches of the training steps")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser.parse_args()


class Ours:
    """The resident Rust program: a line in asks for a pass, a line out has milliseconds."""

    def __init__(self, threads):
        program = ["cargo", "bench", "-q", "--workspace", "--bench", "serve", "--", "--serve"]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(program, cwd=ROOT, env=environment, **pipes)
        first = self.process.stdout.readline()
        if not first.startswith("["):
            sys.exit("compare_torch.py: the Rust program did not start")
        self.layers = json.loads(first)

    def subject(self, contender, which, index):
        def run():
            self.process.stdin.write(f"{contender} {which} {index}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())

        return run


def torch_subjects(layer, which):
    import torch
    from torchvision.ops import deform_conv2d

    torch.manual_seed(1)
    (c_in, c_out), size, k = layer["channels"], layer["size"], layer["kernel_size"]
    stride, pad = layer["stride"], layer["kernel_size"] // 2
    train = which == "both"
    x = torch.randn(BATCH, c_in, size, size).requires_grad_(train and layer["input_gradient"])
    weight = torch.randn(c_out, c_in, k, k).requires_grad_(train)
    bias = torch.randn(c_out).requires_grad_(train)
    out = -(-size // stride)
    upstream = torch.ones(BATCH, c_out, out, out)

    # Offsets M(x) t - t of random poses, a scale of 0.7 to 1.7 and any angle.
    scale = torch.empty(BATCH, out, out).uniform_(0.7, 1.7)
    angle = torch.empty(BATCH, out, out).uniform_(-math.pi, math.pi)
    cos, sin = scale * angle.cos(), scale * angle.sin()
    taps = range(-pad, pad + 1)
    shifts = [
        component
        for ty in taps
        for tx in taps
        for component in (sin * tx + cos * ty - ty, cos * tx - sin * ty - tx)
    ]
    offset = torch.stack(shifts, dim=1)

    def timed(compute):
        def run():
            x.grad = weight.grad = bias.grad = None
            start = time.perf_counter()
            if train:
                compute().backward(upstream)
            else:
                with torch.no_grad():
                    compute()
            return (time.perf_counter() - start) * 1e3

        return run

    plain = lambda: torch.nn.functional.conv2d(x, weight, bias, stride, pad)
    deform = lambda: deform_conv2d(x, offset, weight, bias, stride, pad)
    return {"torch": timed(plain), "deform": timed(deform)}


def torch_step(batch):
    import torch
    from torchvision.models import resnet18

    torch.manual_seed(1)
    network = resnet18(num_classes=10)
    network.conv1 = torch.nn.Conv2d(1, 64, 7, stride=4, padding=3, bias=False)
    network.maxpool = torch.nn.Identity()
    network = network.to(memory_format=torch.channels_last)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=0.01)
    images = torch.rand(batch, 1, 56, 56).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (batch,))

    def run():
        start = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimiser.step()
        return (time.perf_counter() - start) * 1e3

    return run


def layer_subjects(ours, index, which):
    subjects = {name: ours.subject(name, which, index) for name in ("kernel", "module", "burn")}
    return subjects | torch_subjects(ours.layers[index], which)


def step_subjects(ours, batch):
    subjects = {model: ours.subject("step", model, batch) for model in ("sren", "cnn")}
    return subjects | {"torch": torch_step(batch)}


def measure(subjects, repetitions):
    least = {}
    for repetition in range(repetitions + 1):
        for name, run in subjects.items():
            # deform_conv2d is slow and its ratio far from the mark: a few rounds will do.
            if name == "deform" and repetition > 3:
                continue
            spent = run()
            if repetition > 0:  # the first round warms up
                least[name] = min(spent, least.get(name, math.inf))
    return least


def main():
    options = arguments()
    if not KEEP_FREED_MEMORY.items() <= os.environ.items():
        environment = {**os.environ, **KEEP_FREED_MEMORY}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    import torch
    import torchvision

    torch.set_num_threads(options.threads)
    ours = Ours(options.threads)
    chosen = [int(i) for i in options.layers.split(",") if i.isdigit()]
    if not options.layers:
        chosen = range(len(ours.layers))
    rows = []
    if not options.json:
        print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, "
              f"{options.threads} thread(s), batch {BATCH}, least of {options.repetitions}")
        print(f"{'layer':14}{'pass':9}{'torch ms':>10}{'kernel':>8}{'module':>8}"
              f"{'burn':>8}   deform / kernel  / module")
    for index in chosen:
        for which in ("forward", "both"):
            ms = measure(layer_subjects(ours, index, which), options.repetitions)
            row = {
                "layer": ours.layers[index]["name"],
                "pass": which,
                "milliseconds": ms,
                "kernel_to_torch": ms["kernel"] / ms["torch"],
                "module_to_torch": ms["module"] / ms["torch"],
                "burn_to_torch": ms["burn"] / ms["torch"],
                "deform_to_kernel": ms["deform"] / ms["kernel"],
                "deform_to_module": ms["deform"] / ms["module"],
            }
            rows.append(row)
            if not options.json:
                print(f"{row['layer']:14}{which:9}{ms['torch']:10.2f}"
                      f"{row['kernel_to_torch']:8.2f}{row['module_to_torch']:8.2f}"
                      f"{row['burn_to_torch']:8.2f}{row['deform_to_kernel']:18.1f}"
                      f"{row['deform_to_module']:10.1f}", flush=True)
    steps = []
    if not options.json:
        print(f"\n{'training step':23}{'torch ms':>10}{'cnn':>8}{'sren':>8}")
    for batch in (int(b) for b in options.batches.split(",") if b):
        ms = measure(step_subjects(ours, batch), max(1, options.repetitions // 3))
        row = {
            "batch": batch,
            "milliseconds": ms,
            "cnn_to_torch": ms["cnn"] / ms["torch"],
            "sren_to_torch": ms["sren"] / ms["torch"],
        }
        steps.append(row)
        if not options.json:
            print(f"{f'ResNet-18, batch {batch}':23}{ms['torch']:10.1f}"
                  f"{row['cnn_to_torch']:8.2f}{row['sren_to_torch']:8.2f}", flush=True)
    ours.process.stdin.close()
    ours.process.wait()
    if options.json:
        head = {"torch": torch.__version__, "torchvision": torchvision.__version__}
        head |= {"threads": options.threads, "repetitions": options.repetitions, "rows": rows,
                 "steps": steps}
        print(json.dumps(head, indent=1))


if __name__ == "__main__":
    main()
