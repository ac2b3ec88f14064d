"""Threads, forks and the interpreter lock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sren
from sren import _native


@pytest.fixture(autouse=True)
def threads_as_before():
    before = sren.get_num_threads()
    yield
    sren.set_num_threads(before)


def test_the_number_of_threads_can_be_chosen(model: sren.Model, digits: np.ndarray) -> None:
    found = []
    for count in (1, 3):
        sren.set_num_threads(count)
        assert sren.get_num_threads() == count
        found.append(model.predict(digits[:70, :, :, None]).probabilities)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    sren.set_num_threads(0)
    assert sren.get_num_threads() == len(os.sched_getaffinity(0))


def predict_in_child(queue: multiprocessing.Queue) -> None:
    model = sren.load()
    queue.put(model.predict("mnist:0-9").names)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_predict(model: sren.Model, method: str) -> None:
    # The parent's pool is at work before the fork.
    expected = model.predict("mnist:0-9").names
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=predict_in_child, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    assert [queue.get(timeout=120) for _ in children] == [expected] * 3
    for child in children:
        child.join(60)
        assert child.exitcode == 0


def test_the_parents_model_works_in_a_forked_child(model: sren.Model) -> None:
    expected = model.predict("mnist:3").names
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, model.predict("mnist:3").names[0].encode())
        os._exit(0)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.05)
    assert os.read(reader, 10).decode() == expected[0]


def test_a_large_convolution_works_in_a_forked_child() -> None:
    """So many positions that their taps are made in parallel."""
    class Frames:
        scale = np.full((1, 128, 128), 1.5, np.float32)
        angle = np.full((1, 128, 128), 0.5, np.float32)
        confidence = input_confidence = None
        stride, kappa = 1, 1.0

    x, weight = np.ones((1, 128, 128, 4), np.float32), np.ones((3, 3, 4, 4), np.float32)
    sren.set_num_threads(2)
    expected = _native.simconv_forward(Frames, x, weight, None)
    child = os.fork()
    if child == 0:
        found = _native.simconv_forward(Frames, x, weight, None)
        _native.simconv_backward(Frames, x, weight, found, True)
        os._exit(0 if np.array_equal(found, expected) else 1)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child hangs")
        time.sleep(0.05)
    assert ended[1] == 0


def test_a_callback_predicts_while_one_thread_trains(
    model: sren.Model, digits: np.ndarray, tmp_path: Path
) -> None:
    sren.set_num_threads(1)
    found = []

    def predict(_event: object) -> None:
        found.append(model.predict(digits[:1, :, :, None]).names[0])

    sren.train(preset="quick", images=200, epochs=1, out=tmp_path / "run", callback=predict)
    assert len(found) >= 3 and set(found) == {"7"}


def test_workers_of_a_data_loader_estimate_poses() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    images, _ = sren.datasets.srt_mnist("upright", 12)
    sren.poses(images, stride=2)

    class Posed(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, index: int):
            found = sren.poses(images[index], stride=2)
            return torch.from_numpy(found.confidence[0])

    loader = torch.utils.data.DataLoader(
        Posed(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=120
    )
    loaded = torch.cat(list(loader))
    np.testing.assert_array_equal(loaded.numpy(), sren.poses(images, stride=2).confidence)


def test_other_python_threads_go_on(model: sren.Model, digits: np.ndarray) -> None:
    """While one thread predicts, another one counts: with the lock held it could not."""
    batch = digits[:500, :, :, None]
    counted, done = 0, threading.Event()

    def predict() -> None:
        model.predict(batch)
        done.set()

    thread = threading.Thread(target=predict)
    begin = time.monotonic()
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        counted += 1
    seconds = time.monotonic() - begin
    thread.join()
    # A call that keeps the lock lets the other thread run a few times in all.
    assert counted > 20 and counted > 20 * seconds, (counted, seconds)


def test_several_threads_predict_at_once(model: sren.Model, digits: np.ndarray) -> None:
    expected = model.predict(digits[:40, :, :, None]).probabilities
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(model.predict(digits[:40, :, :, None]).probabilities))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 4
    for probabilities in found:
        np.testing.assert_array_equal(probabilities, expected)
