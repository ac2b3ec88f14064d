"""What several tests use: the bundled model, the `sren` command, and runs of a minute."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sren

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def model() -> sren.Model:
    return sren.load("mnist-sren")


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """The bundled test digits, [10000, 28, 28]."""
    return sren.datasets.mnist("test")[0]


@pytest.fixture(scope="session")
def command() -> str:
    """The program `sren`: that of this repository, or what SREN_COMMAND names."""
    given = os.environ.get("SREN_COMMAND")
    found = shutil.which(given or str(ROOT / "target/release/sren"))
    if found is None:
        pytest.skip("no sren command: build it with `cargo build --release`")
    return found


@pytest.fixture(scope="session")
def resnet_run(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `sren train --arch resnet18`, far too short to be good, without its evaluation."""
    out = tmp_path_factory.mktemp("runs") / "resnet18"
    options = "--arch resnet18 --images 24 --batch 12 --epochs 1".split()
    arguments = [command, "train", *options, "--out", str(out)]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        lines = []
        for line in child.stderr:
            lines.append(line)
            if line.startswith("epoch 1:"):
                break
        child.terminate()
    assert (out / "model.safetensors").exists(), "".join(lines)
    return out
