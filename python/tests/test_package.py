"""The package as a whole: types, documentation, examples as written."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sren

ROOT = Path(__file__).parents[2]


def test_a_type_checker_accepts_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_stubs_are_those_of_the_native_module() -> None:
    checks = ["sren._native", "--ignore-missing-stub", "--ignore-positional-only", "--concise"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *checks], capture_output=True, text=True
    )
    # Types that only the stubs have.
    own = r"_native\.(Float|GridTuple|PoseArrays|ImageArgument|Report|Trained|Frames)\b"
    assert done.stdout, done.stderr
    faults = [line for line in done.stdout.splitlines() if not re.search(own, line)]
    assert faults == [], done.stdout + done.stderr


def test_everything_public_is_documented() -> None:
    names = ["sren", "sren.datasets"]
    if importlib.util.find_spec("torch"):
        names.append("sren.torch")
    for name in names:
        module = importlib.import_module(name)
        assert module.__doc__
        for item in getattr(module, "__all__", ["mnist", "srt_mnist"]):
            found = getattr(module, item)
            if inspect.isclass(found) or inspect.isfunction(found):
                assert found.__doc__ and not found.__doc__.startswith(f"{item}("), item
    assert (Path(sren.__file__).parent / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", sren.__version__)


def test_importing_sren_does_not_import_torch() -> None:
    code = "import sys, sren; assert 'torch' not in sys.modules and 'PIL' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def code_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.M | re.S)


def test_the_readme_does_what_it_says(tmp_path: Path) -> None:
    """Its examples, one after the other, in an empty folder."""
    pytest.importorskip("torch", reason="torch is not installed")
    blocks = code_blocks(ROOT / "python/README.md")
    assert len(blocks) == 5
    code = "\n".join(blocks)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_the_tour_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    environment = dict(os.environ, MPLBACKEND="Agg")
    done = subprocess.run(
        [sys.executable, ROOT / "examples/tour.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0, done.stderr
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == ["equivariance.png", "fine_tuning.png", "frames.png", "operator.png"]
    # The claims that its text makes of its pictures are printed.
    errors = [float(value) for value in re.findall(r"right angles: (\S+)", done.stdout)]
    assert errors[0] < 1e-6 < errors[1]
    (upright, rotated) = re.findall(r"'upright': ([\d.]+), 'r': ([\d.]+)", done.stdout)[-1]
    assert float(upright) > 60 and abs(float(upright) - float(rotated)) < 15, done.stdout
