"""Two processes by torchrun: the gradients of one, and a restart after one is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch.distributed")

import sren  # noqa: E402
from ddp_gradients import gradients  # noqa: E402

ROOT = Path(__file__).parents[2]
# A free port of this machine's own; after a restart, the processes meet there again.
TORCHRUN = [
    sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2",
    "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1",
]  # fmt: skip
ENVIRONMENT = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
TRAINING = ["--arch=blocks", "--epochs=3", "--images=96", "--batch=16", "--timeout=60"]


def test_gradients_are_those_of_one_process(tmp_path: Path) -> None:
    script = Path(__file__).with_name("ddp_gradients.py")
    subprocess.run(
        [*TORCHRUN, str(script), str(tmp_path / "gradients.pt")],
        env=ENVIRONMENT, check=True, timeout=300,
    )
    shared = torch.load(tmp_path / "gradients.pt", weights_only=True)
    alone = gradients(0, 1)
    assert shared.keys() == alone.keys()
    for name, expected in alone.items():
        error = (shared[name] - expected).abs().max() / expected.abs().max().clamp(min=1e-3)
        assert error < 1e-5, (name, error)


def start(out: Path) -> subprocess.Popen[str]:
    script = str(ROOT / "examples/train_ddp.py")
    return subprocess.Popen(
        [*TORCHRUN, "--max-restarts=3", "--monitor-interval=0.2", script, *TRAINING, f"--out={out}"],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )


def test_a_killed_process_is_replaced_and_training_goes_on(tmp_path: Path) -> None:
    job = start(tmp_path / "killed")
    assert job.stdout is not None
    watch = threading.Timer(400, job.kill)
    watch.start()
    lines: list[str] = []
    killed = False
    for line in job.stdout:
        lines.append(line)
        if "epoch 1: loss" in line and not killed:
            # The second process dies after the first checkpoint.
            # Processes write to one pipe: lines may run together.
            own = re.search(r"rank 1 of 2: process (\d+)", "".join(lines))
            assert own, "".join(lines)
            os.kill(int(own.group(1)), signal.SIGKILL)
            killed = True
    watch.cancel()
    output = "".join(lines)
    assert job.wait(timeout=60) == 0 and killed, output
    starts = [int(first) for first in re.findall(r"rank 1 of 2: .* from epoch (\d+)", output)]
    assert starts[0] == 1 and len(starts) >= 2 and starts[-1] > 1, output
    assert "epoch 3: loss" in output
    # As if nothing had happened: the same weights as those of an undisturbed run.
    calm = start(tmp_path / "calm")
    output, _ = calm.communicate(timeout=300)
    assert calm.returncode == 0, output
    states = [
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("killed", "calm")
    ]
    assert states[0]["epoch"] == states[1]["epoch"] == 3
    for name, value in states[0]["network"].items():
        torch.testing.assert_close(value, states[1]["network"][name], atol=1e-5, rtol=1e-4)
    # And a run that the library opens.
    model = sren.load(tmp_path / "killed/run")
    assert model.predict("mnist:0").probabilities.shape == (1, 10)
