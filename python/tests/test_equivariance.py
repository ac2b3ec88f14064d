"""`equivariance_error` tells equivariant functions from others."""

from __future__ import annotations

import numpy as np
import pytest

import sren


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return sren.datasets.srt_mnist("upright", 3)[0]


def test_pointwise_functions_are_equivariant_and_shifts_are_not(images: np.ndarray) -> None:
    assert sren.equivariance_error(lambda x: x**2, images) < 1e-10
    assert sren.equivariance_error(lambda x: np.roll(x, 5, axis=1), images) > 0.5
    pooled = sren.equivariance_error(lambda x: x.mean(axis=(1, 2)), images)
    assert pooled < 1e-10
    half = sren.equivariance_error(
        lambda x: x.reshape(3, 28, 2, 28, 2, 1).mean(axis=(2, 4)), images, angles=[90, 180]
    )
    assert half < 1e-10
    # Every second pixel from the first: not symmetric about the centre.
    every_second = sren.equivariance_error(lambda x: x[:, ::2, ::2], images)
    assert every_second > 0.01


def test_the_bundled_network_is_more_equivariant_than_its_input_is_constant(
    model: sren.Model, images: np.ndarray
) -> None:
    def features(transformed: np.ndarray) -> dict[str, sren.FeatureMap]:
        # The canvas is what the network sees: the digit is its middle.
        return model.features(np.clip(transformed[:, 14:42, 14:42], 0, 1))

    layers = sren.equivariance_errors(features, images)
    assert {layer.name for layer in layers} == set(model.features(images[0, 14:42, 14:42]))
    assert all(layer.error < 1e-4 and layer.compared > 0 for layer in layers), layers
    assert len(layers[0].by_transform) == 3


def test_exceptions_of_the_function_are_raised_as_they_are(images: np.ndarray) -> None:
    def broken(_: np.ndarray) -> np.ndarray:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sren.equivariance_error(broken, images)
    with pytest.raises(ValueError, match="expected features"):
        sren.equivariance_error(lambda x: x[0, 0, 0], images)
    with pytest.raises(ValueError, match="over a stride, got 55 x 56"):
        sren.equivariance_error(lambda x: x[:, 1:], images)
    with pytest.raises(ValueError, match="at least 1 angle"):
        sren.equivariance_error(lambda x: x, images, angles=[])
    with pytest.raises(ValueError, match="grid: expected cell or corner"):
        sren.equivariance_error(lambda x: x, images, grid="centre")


def test_torch_modules_get_and_give_channels_first(images: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pointwise = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 1), torch.nn.ReLU())
    assert sren.equivariance_error(pointwise, images) < 1e-10
    plain = torch.nn.Conv2d(1, 4, 5, padding=2)
    assert sren.equivariance_error(plain, images) > 0.05


def test_a_module_is_measured_in_evaluation_mode_and_left_as_it_was(images: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    norm = torch.nn.BatchNorm2d(1)
    sren.equivariance_error(torch.nn.Sequential(norm), images)
    assert norm.training and norm.num_batches_tracked == 0

    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ValueError, match="expected a tensor or a mapping, got tuple"):
        sren.equivariance_error(Pair(), images)
