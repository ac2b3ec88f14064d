"""Training and evaluation of runs, with progress and Ctrl-C."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _native
from ._model import BUNDLED, Model, load


@dataclass(frozen=True)
class TrainingStep:
    """A step of training is done. Loss and accuracy (per cent) are those of the epoch so far."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    accuracy: float
    images_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class TrainingEpoch:
    """An epoch of training is done. Accuracies are in per cent."""

    epoch: int
    loss: float
    accuracy: float
    validation_accuracy: float
    learning_rate: float
    images_per_second: float


Callback = Callable[[TrainingStep | TrainingEpoch], object]


@dataclass(frozen=True)
class Run:
    """A run folder, as ``sren train`` writes it."""

    path: Path
    finished: bool
    """Whether all epochs are done; otherwise :func:`resume` goes on."""
    skipped: list[str]
    """The files that were not trained on, and why."""

    @property
    def metrics(self) -> list[TrainingEpoch]:
        """The epochs so far."""
        path = self.path / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [TrainingEpoch(**json.loads(line)) for line in lines]

    def load(self) -> Model:
        """The model of the best epoch."""
        return load(self.path)

    def evaluate(self, sets: Iterable[str] | None = None, **options: Any) -> dict[str, Any]:
        """See :func:`evaluate`."""
        return evaluate(self.path, sets, **options)


def train(
    data: str | os.PathLike[str] = "mnist",
    preset: str | None = None,
    out: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    callback: Callback | None = None,
    *,
    arch: str | None = None,
    model: str | None = None,
    augment: bool | str | None = None,
    batch: int | None = None,
    images: int | None = None,
    seed: int | None = None,
    size: int | None = None,
    config: str | os.PathLike[str] | None = None,
    start: str | os.PathLike[str] | None = None,
    freeze_backbone: bool = False,
    progress: bool = True,
) -> Run:
    """Trains a network on upright images, as ``sren train`` does.

    ``data`` is ``"mnist"``, a folder of images in folders named by their class, or ``"stl10:DIR"``.
    ``callback`` is called with every :class:`TrainingStep` and :class:`TrainingEpoch`; if it returns
    ``False``, training stops and the run is saved. So does Ctrl-C, and an exception of the callback.
    ``start`` is a run whose weights this one starts from. All other options are those of the
    command: ``preset`` (quick, default, plus, paper, photos, stl10), ``arch`` (small, wide, blocks,
    resnet18, resnet16, wrn16-8, photos), ``model`` (sren, so2, scale, cnn), ``augment``
    (``"paper"`` or ``True`` for slight rotations and scalings, ``"full"`` for those of the test
    images, ``"none"``; ``False`` also for no flips, crops and colours of photographs).
    """
    paths = {"data": data, "out": out, "config": config, "start": start}
    options: dict[str, Any] = {
        name: None if path is None else os.fsdecode(path) for name, path in paths.items()
    }
    if isinstance(augment, bool):
        digits = options["data"] in (None, "mnist") and config is None and start is None
        options.update(no_augment=not augment and not digits)
        augment = "paper" if augment else "none"
    options.update(preset=preset, arch=arch, model=model, augment=augment, batch=batch)
    options.update(images=images, seed=seed, size=size, epochs=epochs)
    options.update(freeze_backbone=freeze_backbone)
    with _Reports(callback, progress) as reports:
        path, finished, skipped = _native.train(options, reports)
    return Run(Path(path), finished, skipped)


def resume(
    run: str | os.PathLike[str],
    epochs: int | None = None,
    callback: Callback | None = None,
    *,
    progress: bool = True,
) -> Run:
    """Trains a run on from where it stopped; with ``epochs`` until that epoch, also a finished one."""
    with _Reports(callback, progress) as reports:
        path, finished, skipped = _native.resume(run, epochs, reports)
    return Run(Path(path), finished, skipped)


def evaluate(
    run: str | os.PathLike[str] = BUNDLED,
    sets: Iterable[str] | None = None,
    *,
    images: int = 10_000,
    data: str | os.PathLike[str] | None = None,
    held_out: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """The accuracy of a run on test sets, as ``sren eval --json`` prints it.

    ``sets`` are some of ``upright``, ``r``, ``s``, ``srt``, ``ood``, ``aff``; ``images`` is how many per
    set. ``data`` is where the images of the run are now; ``held_out`` takes held-out training images.
    """
    if isinstance(sets, str):
        sets = [sets]
    if images < 1:
        raise ValueError(f"images: expected at least 1, got {images}")
    place = None if data is None else os.fsdecode(data)
    with _Reports(None, progress) as reports:
        report, _ = _native.evaluate(run, list(sets or []), images, place, held_out, reports)
    found: dict[str, Any] = json.loads(report)
    return found


class _Reports:
    """Hands events to a callback, and shows progress: by ``tqdm``, or a line per epoch."""

    def __init__(self, callback: Callback | None, progress: bool) -> None:
        self._callback = callback
        self._tqdm = _tqdm() if progress else None
        self._lines = progress and self._tqdm is None
        self._bar: Any = None
        self._task = ""

    def __enter__(self) -> _Reports:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, kind: str, values: dict[str, Any]) -> bool | None:
        if kind == "task":
            self._show(values["task"], values["done"], values["total"], "")
            return None
        event = TrainingStep(**values) if kind == "step" else TrainingEpoch(**values)
        if isinstance(event, TrainingStep):
            figures = f"loss {event.loss:.4f}, accuracy {event.accuracy:.2f} %"
            self._show(f"epoch {event.epoch}/{event.epochs}", event.step, event.steps, figures)
        else:
            self._epoch(event)
        stopped = self._callback is not None and self._callback(event) is False
        return False if stopped else None

    def _epoch(self, event: TrainingEpoch) -> None:
        self._close()
        line = (
            f"epoch {event.epoch}: loss {event.loss:.4f}, accuracy {event.accuracy:.2f} %, "
            f"validation {event.validation_accuracy:.2f} %"
        )
        if self._tqdm is not None:
            self._tqdm.write(line, file=sys.stderr)
        elif self._lines:
            print(line, file=sys.stderr)

    def _show(self, task: str, done: int, total: int, figures: str) -> None:
        if self._tqdm is None:
            return
        if task != self._task:
            self._close()
            self._bar = self._tqdm(total=total or None, desc=task, leave=False)
            self._task = task
        self._bar.n = done
        self._bar.set_postfix_str(figures, refresh=False)
        self._bar.update(0)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar, self._task = None, ""


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return tqdm
