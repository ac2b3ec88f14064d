"""Exported files are those of the command."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import sren


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, []),
        (
            {"taps": "deform", "layout": "nhwc", "outputs": ["poses", "logits"], "size": 64},
            ["--taps", "deform", "--layout", "nhwc", "--outputs", "poses,logits", "--size", "64"],
        ),
        ({"with_preprocessing": True}, ["--with-preprocessing"]),
    ],
)
def test_files_equal_those_of_the_command(
    command: str, model: sren.Model, tmp_path: Path, options: dict[str, Any], arguments: list[str]
) -> None:
    model.export(tmp_path / "python.onnx", **options)
    output = str(tmp_path / "command.onnx")
    subprocess.run([command, "export", "mnist-sren", "-o", output, *arguments], check=True)
    assert (tmp_path / "python.onnx").read_bytes() == Path(output).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"taps": "cubic"}, "taps: expected grid or deform, got cubic"),
        ({"layout": "chw"}, "layout: expected nchw or nhwc, got chw"),
        ({"outputs": ["classes"]}, "output: expected logits, probabilities, poses or features"),
        ({"size": 3}, "expected"),
        ({"size": 64, "with_preprocessing": True}, "size: expected 56 x 56"),
    ],
)
def test_wrong_options_are_named_and_nothing_is_written(
    model: sren.Model, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model.export(tmp_path / "model.onnx", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_an_os_error(model: sren.Model, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        model.export(tmp_path / "absent" / "model.onnx")
