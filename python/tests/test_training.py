"""Training from Python: callbacks, interruption, resumption, evaluation, other images."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sren

QUICK = {"preset": "quick", "images": 64, "batch": 16, "epochs": 2, "progress": False}


def test_a_run_trains_reports_and_predicts(tmp_path: Path, digits: np.ndarray) -> None:
    events: list[object] = []
    run = sren.train(out=tmp_path / "run", callback=events.append, **QUICK)
    assert run.finished and run.path == tmp_path / "run" and run.skipped == []
    steps = [event for event in events if isinstance(event, sren.TrainingStep)]
    epochs = [event for event in events if isinstance(event, sren.TrainingEpoch)]
    assert [(s.epoch, s.step) for s in steps] == [(e, s) for e in (1, 2) for s in (1, 2, 3, 4)]
    assert all(s.epochs == 2 and s.steps == 4 and s.loss > 0 for s in steps)
    assert epochs == run.metrics and [e.epoch for e in epochs] == [1, 2]
    assert run.load().predict(digits[:3, :, :, None]).probabilities.shape == (3, 10)
    found = run.evaluate("r", images=50, progress=False)
    assert found["sets"]["r"]["n"] == 50
    # The same seed gives the same run, and a finished one can be extended.
    again = sren.train(out=tmp_path / "again", **QUICK)
    figures = [(e.loss, e.validation_accuracy) for e in run.metrics]
    assert figures == [(e.loss, e.validation_accuracy) for e in again.metrics]
    longer = sren.resume(run.path, epochs=3, progress=False)
    assert longer.finished and len(longer.metrics) == 3
    with pytest.raises(ValueError, match="expected a folder without a run"):
        sren.train(out=tmp_path / "run", **QUICK)


@pytest.mark.parametrize(
    ("augment", "written"), [(True, "paper"), (False, "none"), ("full", "full")]
)
def test_augmentation_is_a_flag_or_a_policy(
    tmp_path: Path, augment: bool | str, written: str
) -> None:
    options = {"preset": "quick", "images": 50, "epochs": 1, "progress": False}
    run = sren.train(out=tmp_path / "run", augment=augment, **options)
    assert f'augment = "{written}"' in (run.path / "config.toml").read_text()


def test_a_callback_stops_a_run_and_it_resumes(tmp_path: Path) -> None:
    whole = sren.train(out=tmp_path / "whole", **QUICK)

    def stop(event: object) -> bool:
        return not (isinstance(event, sren.TrainingStep) and (event.epoch, event.step) == (2, 1))

    stopped = sren.train(out=tmp_path / "run", callback=stop, **QUICK)
    assert not stopped.finished and len(stopped.metrics) == 1
    resumed = sren.resume(stopped.path, progress=False)
    assert resumed.finished
    weights = [path / "model.safetensors" for path in (whole.path, resumed.path)]
    assert weights[0].read_bytes() == weights[1].read_bytes()

    def fail(event: object) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        sren.train(out=tmp_path / "failed", callback=fail, **QUICK)
    assert sren.resume(tmp_path / "failed", progress=False).finished


def start_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-c", textwrap.dedent(code), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("work", ["train", "evaluate", "predict"])
def test_ctrl_c_interrupts(tmp_path: Path, work: str) -> None:
    child = start_python(
        """
        import sys, numpy, sren
        out, work = sys.argv[1:]
        model, digits = sren.load(), sren.datasets.mnist()[0][..., None]
        said = []
        def say(event):
            said or print("under way")
            said.append(event)
        try:
            if work == "train":
                sren.train(preset="quick", images=20000, out=out, callback=say, progress=False)
            else:
                print("under way")
                if work == "evaluate":
                    sren.evaluate(progress=False)
                else:
                    model.predict(numpy.concatenate([digits] * 20))
        except KeyboardInterrupt:
            print("interrupted")
        """,
        tmp_path / "run",
        work,
    )
    assert child.stdout is not None
    assert "under way" in child.stdout.readline()
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    output, _ = child.communicate(timeout=60)
    assert output.split() == ["interrupted"] and child.returncode == 0, output
    assert time.monotonic() - begin < 60
    if work == "train":
        assert (tmp_path / "run/checkpoint/state.safetensors").exists()


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress_goes_to_standard_error(tmp_path: Path, with_tqdm: bool) -> None:
    hidden = "" if with_tqdm else "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
    options = dict(QUICK, progress=True, out=str(tmp_path / "run"))
    code = f"{hidden}import sren; sren.train(**{options!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "epoch 2: loss" in done.stderr
    assert ("epoch 1/2:" in done.stderr) == with_tqdm


def test_images_of_ones_own(tmp_path: Path, digits: np.ndarray) -> None:
    labels = sren.datasets.mnist()[1]
    for name, digit in (("zero", 0), ("one", 1)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for index in np.flatnonzero(labels == digit)[:60]:
            image = Image.fromarray(digits[index]).resize((32, 32)).convert("RGB")
            image.save(tmp_path / f"data/{name}/{index}.png")
    (tmp_path / "data/one/broken.png").write_text("no image")
    run = sren.train(
        tmp_path / "data", arch="blocks", size=32, epochs=1, batch=8, out=tmp_path / "run", progress=False
    )
    assert run.finished and any("broken.png" in line for line in run.skipped)
    model = run.load()
    assert model.classes == ("one", "zero")
    files = sorted((tmp_path / "data/zero").iterdir())
    assert set(model.predict(files).names) <= {"one", "zero"}
    assert run.evaluate(progress=False)["classes"] == ["one", "zero"]
    tuned = sren.train(
        tmp_path / "data", start=run.path, epochs=1, batch=8, freeze_backbone=True,
        out=tmp_path / "tuned", progress=False,
    )
    assert tuned.finished and os.path.exists(tuned.path / "model.safetensors")
