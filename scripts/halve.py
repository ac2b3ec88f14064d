"""Weights in half precision, in half the room: the bundled network was made so.

    pip install numpy safetensors
    python scripts/halve.py runs/mnist-sren-1/model.safetensors models/mnist-sren.safetensors
"""

import sys

import numpy
from safetensors.numpy import load_file, save_file

if len(sys.argv) != 3:
    sys.exit(__doc__.strip())
values = load_file(sys.argv[1])
halves = {name: value.astype(numpy.float16) for name, value in values.items()}
for name, half in halves.items():
    if not numpy.isfinite(half).all():
        sys.exit(f"{sys.argv[1]}: {name} has values that half precision cannot hold")
save_file(halves, sys.argv[2])
