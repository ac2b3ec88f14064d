"""Predictions are those of the command, whatever form images come in."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sren


@pytest.fixture(scope="module")
def files(digits: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """100 images: digits as they are, enlarged, in colour, and as JPEG."""
    folder = tmp_path_factory.mktemp("digits")
    paths = []
    for index in range(100):
        image = Image.fromarray(digits[index])
        if index % 4 == 1:
            image = image.resize((90, 61), Image.Resampling.BICUBIC)
        if index % 4 == 2:
            image = image.convert("RGB").rotate(30)
        path = folder / f"{index}.{'jpg' if index % 4 == 3 else 'png'}"
        image.save(path)
        paths.append(path)
    return paths


def test_predict_equals_the_command_bit_for_bit(
    command: str, model: sren.Model, files: list[Path]
) -> None:
    arguments = [command, "predict", "mnist-sren", *map(str, files), "--json", "--top", "10"]
    printed = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    found = model.predict(files)
    assert len(lines) == len(found) == 100
    for line, prediction in zip(lines, found):
        by_class = {entry["class"]: entry["probability"] for entry in line["top"]}
        ours = [float(value) for value in prediction.probabilities]
        assert ours == [by_class[name] for name in model.classes]
        assert (prediction.name, prediction.probability) == (line["class"], line["probability"])
        pose = line["pose"] or {"orientation_deg": float("nan"), "scale_px": float("nan")}
        expected = [pose["orientation_deg"], pose["scale_px"]]
        np.testing.assert_array_equal([prediction.orientation, prediction.scale], expected)


def test_transparent_and_sideways_pictures_are_read_as_their_files(
    model: sren.Model, digits: np.ndarray, tmp_path: Path
) -> None:
    digit = Image.fromarray(digits[3])
    white = Image.new("L", digit.size, 255)
    sideways = Image.Exif()
    sideways[0x0112] = 6
    digit.save(tmp_path / "sideways.jpg", exif=sideways)
    Image.merge("LA", (white, digit)).save(tmp_path / "grey.png")
    Image.merge("RGBA", (white, white, white, digit)).save(tmp_path / "colour.png")
    for name in ("sideways.jpg", "grey.png", "colour.png"):
        by_path = model.predict(tmp_path / name)
        with Image.open(tmp_path / name) as picture:
            by_picture = model.predict(picture)
        assert np.abs(by_path.probabilities - by_picture.probabilities).max() < 1e-3, name
        assert by_path.orientation == pytest.approx(by_picture.orientation, abs=1), name


def test_arrays_pictures_and_names_are_the_same_image(
    model: sren.Model, digits: np.ndarray, tmp_path: Path
) -> None:
    digit = digits[3]
    Image.fromarray(digit).save(tmp_path / "digit.png")
    forms = [
        digit,
        digit[:, :, None],
        digit[None, :, :, None],
        np.asfortranarray(digit),
        digit[::-1, ::-1].copy()[::-1, ::-1],
        np.repeat(digit, 2, axis=1)[:, ::2],
        digit / 255,
        (digit / 255).astype(np.float32),
        (digit / 255).astype(">f4"),
        Image.fromarray(digit),
        tmp_path / "digit.png",
        str(tmp_path / "digit.png"),
        "mnist:3",
        [digit],
    ]
    expected = model.predict(digit).probabilities
    for form in forms:
        np.testing.assert_array_equal(model.predict(form).probabilities, expected)
    mixed = model.predict([digit, "mnist:0-2", tmp_path / "digit.png"])
    assert mixed.names == ["0", "7", "2", "1", "0"]
    # Half precision cannot hold every byte.
    half = model.predict((digit / 255).astype(np.float16)).probabilities
    np.testing.assert_allclose(half, expected, atol=0.01)


def test_a_batch_gives_what_its_images_give(model: sren.Model, digits: np.ndarray) -> None:
    batch = model.predict(digits[:150, :, :, None])
    assert batch.probabilities.shape == (150, 10) and batch.orientation.shape == (150,)
    np.testing.assert_allclose(batch.probabilities.sum(1), 1, atol=1e-5)
    one = model.predict(digits[120])
    np.testing.assert_allclose(batch.probabilities[120], one.probabilities[0], atol=1e-6)
    assert batch[120].name == one.names[0] == batch.names[120]
    assert [prediction.label for prediction in batch] == list(batch.labels)
    labels = sren.datasets.mnist()[1][:150]
    assert (batch.labels == labels).mean() > 0.95


def test_orientation_and_scale_follow_the_image(model: sren.Model, digits: np.ndarray) -> None:
    upright, rotated = model.predict(digits[5]), model.predict(np.rot90(digits[5], -1))
    turn = (rotated.orientation - upright.orientation + 180) % 360 - 180
    assert abs(turn[0] - 90) < 1
    flat = model.predict(np.zeros((28, 28), np.uint8))
    assert np.isnan(flat.orientation[0]) and np.isnan(flat.scale[0])


def test_features_lie_on_their_grids_and_move_with_the_image(model: sren.Model) -> None:
    images, _ = sren.datasets.srt_mnist("upright", 2)
    inner = images[:, 14:42, 14:42]
    features = model.features(inner)
    seen = model.preprocess(inner)
    assert seen.shape == (2, *model.input_shape)
    np.testing.assert_allclose(seen, images, atol=1 / 255)
    for values, grid in features.values():
        assert values.shape[:3] == (2, grid.height, grid.width)
        points = grid.points()
        assert points.shape == (grid.height, grid.width, 2)
        # Symmetric about the centre of the canvas.
        np.testing.assert_allclose(points[0, 0] + points[-1, -1], [55, 55])
    rotated = model.features(np.rot90(inner, axes=(1, 2)))
    for name, (values, _) in features.items():
        there = np.rot90(values, axes=(1, 2))
        assert np.abs(rotated[name].values - there).max() < 1e-3 * np.abs(values).max(), name


def test_poses_rotate_with_the_image(model: sren.Model) -> None:
    images, _ = sren.datasets.srt_mnist("srt", 3)
    for found in (sren.poses(images, stride=2), model.poses(images[:, 14:42, 14:42], stride=2)):
        assert found.scale.shape == found.angle.shape == found.confidence.shape == (3, 28, 28)
        assert (found.scale > 0).all() and (found.confidence <= 1).all()
        assert found.confidence.max() > 0
    found = sren.poses(images, stride=2)
    rotated = sren.poses(np.rot90(images, axes=(1, 2)), stride=2)
    confident = np.rot90(found.confidence, axes=(1, 2)) > 0.5
    assert confident.sum() > 50
    turn = (rotated.angle - np.rot90(found.angle, axes=(1, 2)))[confident]
    np.testing.assert_allclose(np.cos(turn + np.pi / 2), 1, atol=1e-5)
    ratio = (rotated.scale / np.rot90(found.scale, axes=(1, 2)))[confident]
    np.testing.assert_allclose(ratio, 1, rtol=1e-3)
    coarse = sren.poses(images, stride=4, max_scale=10.0, contrast=(0.1, 0.2))
    assert coarse.grid.height == 14 and coarse.scale.max() <= 10


def test_models_say_what_they_are_and_can_be_pickled(model: sren.Model, digits: np.ndarray) -> None:
    assert "mnist-sren" in repr(model) and "438,162" in repr(model)
    assert (model.equivariance, model.input_shape) == ("sren", (56, 56, 1))
    assert model.classes == tuple("0123456789")
    again = pickle.loads(pickle.dumps(model))
    expected = model.predict(digits[0]).probabilities
    np.testing.assert_array_equal(again.predict(digits[0]).probabilities, expected)


def test_the_test_sets_are_those_of_the_command(command: str, model: sren.Model) -> None:
    images, labels = sren.datasets.srt_mnist("srt", 200)
    assert images.shape == (200, 56, 56, 1) and images.dtype == np.float32
    np.testing.assert_array_equal(images[[7]], sren.datasets.srt_mnist("srt", [7])[0])
    digits, raw_labels = sren.datasets.mnist()
    np.testing.assert_array_equal(labels, raw_labels[:200])
    upright, _ = sren.datasets.srt_mnist("upright", 2)
    np.testing.assert_allclose(upright[1, 14:42, 14:42, 0] * 255, digits[1], atol=1e-4)
    arguments = [command, "eval", "--sets", "r,srt", "--images", "200", "--json", "--quiet"]
    printed = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout
    found = sren.evaluate(sets=["r", "srt"], images=200, progress=False)
    assert found == json.loads(printed)
