"""Bad input raises an exception whose line says what was expected."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import sren
from sren import _native

GOOD = np.zeros((28, 28), np.uint8)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "at least 1 image"),
        (np.zeros((0, 28, 28, 1), np.uint8), "at least 1 image"),
        (np.zeros((0, 28), np.uint8), "at least 1"),
        (np.zeros(5, np.uint8), r"expected \[h, w\]"),
        (np.zeros((64, 28, 28), np.uint8), r"batches: \[n, h, w, c\]"),
        (np.zeros((28, 28, 4), np.uint8), r"\[h, w, 3\]"),
        (np.zeros((1, 1, 28, 28, 1), np.uint8), r"expected \[h, w\]"),
        (np.zeros((28, 28), np.int64), "uint8 or floats in 0..1, got int64"),
        (np.zeros((28, 28), complex), "got complex128"),
        (np.full((28, 28), "a"), "uint8 or floats"),
        (np.full((28, 28), None), "got object"),
        (np.full((28, 28), np.nan), "finite values, got NaN"),
        (np.full((28, 28), 1e300), "finite values, got inf"),
        (np.full((28, 28), 255.0), r"floats in 0..1 \(or uint8\), got 255"),
        (np.full((28, 28), -1.0, np.float32), "got -1"),
        (7, "expected an array, a PIL image or a path, got int"),
        (None, "got NoneType"),
        ([GOOD, None], "got NoneType"),
        ([[1, 2], [3, 4]], "expected an array"),
        ("mnist:10000", "expected mnist:0 to mnist:9999"),
        (Image.new("I", (9, 9)), "PIL mode I"),
    ],
)
def test_images_that_are_none(model: sren.Model, images: object, message: str) -> None:
    for call in (model.predict, model.features, model.poses, model.preprocess):
        with pytest.raises(ValueError, match=message):
            call(images)


def test_files_that_cannot_be_read(model: sren.Model, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere.png: No such file"):
        model.predict("nowhere.png")
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(ValueError, match="text.png: expected a png, jpeg"):
        model.predict(tmp_path / "text.png")
    with pytest.raises(ValueError, match="expected a file, got a folder"):
        model.predict([GOOD, tmp_path])


def test_runs_that_are_not_there(tmp_path: Path, model: sren.Model) -> None:
    with pytest.raises(ValueError, match="expected the folder of a run, got nothing there"):
        sren.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="one without config.toml"):
        sren.load(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.toml").write_text("epochs = 'x'")
    with pytest.raises(ValueError, match="expected a training configuration"):
        sren.load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    for call in (sren.load, sren.evaluate, sren.resume):
        with pytest.raises(ValueError, match="nothing there"):
            call(tmp_path / "run")


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="preset: expected quick, default"):
        sren.train(preset="slow", out=tmp_path / "a")
    with pytest.raises(ValueError, match="Architecture: expected small"):
        sren.train(arch="large", out=tmp_path / "a")
    with pytest.raises(ValueError, match="at least 1 epoch"):
        sren.train(epochs=0, out=tmp_path / "a")
    with pytest.raises(ValueError, match="epochs: expected another value, got -3"):
        sren.train(epochs=-3, out=tmp_path / "a")
    with pytest.raises(OSError, match="No such file"):
        sren.train(tmp_path / "nowhere", out=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    with pytest.raises(ValueError, match="test set: expected upright, r, s, srt, ood or aff, got x"):
        sren.evaluate(sets="x")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        sren.evaluate(images=0)
    with pytest.raises(ValueError, match="expected train or test, got both"):
        sren.datasets.mnist("both")
    with pytest.raises(ValueError, match="expected 1 to 10000, got 10001"):
        sren.datasets.srt_mnist("r", 10_001)
    with pytest.raises(ValueError, match="an index below 10000"):
        sren.datasets.srt_mnist("r", [10_000])
    with pytest.raises(ValueError, match="got colour"):
        sren.poses(GOOD, colour=1)
    with pytest.raises(ValueError, match="a stride of at least 1, got 0"):
        sren.poses(GOOD, stride=0)
    with pytest.raises((ValueError, OverflowError)):
        sren.poses(GOOD, stride=-1)
    with pytest.raises(ValueError, match="one size"):
        sren.poses([GOOD, GOOD[:20]])
    with pytest.raises(ValueError, match="sides of 8 to 2048"):
        sren.poses(GOOD[:4, :4])
    with pytest.raises(ValueError, match="at most 1024 threads, got 100000"):
        sren.set_num_threads(100_000)




@st.composite
def small_arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of any shape and type: mostly images, with negative strides and odd values."""
    shape = draw(
        st.one_of(
            hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=12),
            st.tuples(st.integers(1, 20), st.integers(1, 20)),
            st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3])),
        )
    )
    dtype = draw(st.sampled_from(["u1", "f4", "f8", "f2", ">f4", "i4", "?"]))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed).random(shape)
    values = np.asarray(random * 255 if dtype == "u1" else random).astype(dtype)
    special = draw(st.sampled_from([None, None, None, np.nan, np.inf, -1, 2, 1e38]))
    if special is not None and values.dtype.kind == "f" and values.size:
        values.flat[seed % values.size] = special
    if values.ndim and draw(st.booleans()):
        values = values[::-1]
    return values


NUMBERS = st.integers(-2, 9)


@settings(
    max_examples=10_000, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    call=st.sampled_from(["predict", "poses", "simconv", "error"]),
    values=small_arrays(),
    numbers=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    kappa=st.floats(allow_nan=True, width=32),
)
def test_ten_thousand_random_calls(
    model: sren.Model, call: str, values: np.ndarray, numbers: tuple[int, ...], kappa: float
) -> None:
    """Nothing but ordinary exceptions, and numbers where there are none."""
    n, size, stride, c_in, c_out = numbers
    try:
        if call == "predict":
            found = model.predict(values)
            assert np.isfinite(found.probabilities).all()
        elif call == "poses":
            assert (sren.poses(values, stride=stride).scale > 0).all()
        elif call == "error":
            sren.equivariance_error(lambda x: x[:, :: max(stride, 1)], values)
        else:
            random_simconv(n, size, stride, c_in, c_out, kappa, values)
    except (TypeError, ValueError, OverflowError):
        pass


def random_simconv(
    n: int, size: int, stride: int, c_in: int, c_out: int, kappa: float, values: np.ndarray
) -> None:
    """Poses of any values on 4 x 5 positions; kernels, strides and channels of any size."""
    content = values.astype(np.float32).ravel() if values.size else np.ones(1, np.float32)
    poses = np.resize(content, (abs(n), 4, 5))

    class Frames:
        scale, angle = poses, -poses
        confidence = None if n % 2 else np.clip(poses, 0, 1)
        input_confidence = None

    Frames.stride, Frames.kappa = stride, kappa
    x = np.ones((abs(n), 4 * abs(stride), 5 * abs(stride), abs(c_in)), np.float32)
    weight = np.ones((abs(size), abs(size), abs(c_in), abs(c_out)), np.float32)
    y = _native.simconv_forward(Frames(), x, weight, None)
    by_input, by_weight, by_bias = _native.simconv_backward(Frames(), x, weight, y, True)
    assert by_input is not None and by_input.shape == x.shape
    assert by_weight.shape == weight.shape and by_bias.shape == (abs(c_out),)
