"""Memory does not grow with the number of calls."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

CALLS = """
import gc, sys
import numpy as np
import sren
from sren import _native

model = sren.load()
digit = sren.datasets.mnist()[0][0]
image = np.zeros((1, 16, 16, 1), np.float32)
image[0, 4:12, 6:9] = 1

class Frames:
    scale = np.full((1, 8, 8), 1.5, np.float32)
    angle = confidence = np.full((1, 8, 8), 0.5, np.float32)
    input_confidence = None
    stride, kappa = 1, 1.0

x, weight = np.ones((1, 8, 8, 4), np.float32), np.ones((3, 3, 4, 4), np.float32)

def once(number):
    model.predict(digit)
    sren.poses(image, stride=4)
    sren.poses(np.zeros((16 + number % 100, 20, 1), np.float32), stride=8)
    y = _native.simconv_forward(Frames, x, weight, None)
    _native.simconv_backward(Frames, x, weight, y, True)
    try:
        model.predict(np.full((28, 28), np.nan))
    except ValueError:
        pass

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

for number in range(500):
    once(number)
before = resident()
for number in range(2000):
    once(number)
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ten_thousand_calls_leave_memory_as_it_was() -> None:
    """2,000 rounds of six calls, with images of many sizes."""
    arguments = [sys.executable, "-c", textwrap.dedent(CALLS)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=600)
    grown = float(done.stdout)
    # A leak of one small array (1 kB) per call would be 10 MB.
    assert grown < 5, f"{grown:.1f} MB more"
