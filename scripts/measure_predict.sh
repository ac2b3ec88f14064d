#!/usr/bin/env bash
# Speed and memory of `sren predict` on 1,000 photographs of 12 megapixels and 1,000 of 64 pixels.
# Needs Python with Pillow and NumPy.
#
#   bash scripts/measure_predict.sh [SREN] [RUN] [THREADS]
set -euo pipefail
sren=$(realpath "${1:-target/release/sren}")
run=${2:-mnist-sren}
threads=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work" << 'PYTHON'
import sys
import numpy
from PIL import Image

rng = numpy.random.default_rng(1)
for name, size in [("large", (4000, 3000)), ("small", (64, 64))]:
    # Structure of every size, as photographs have it.
    image = sum(
        numpy.asarray(Image.fromarray(rng.random((4 * 2**k, 4 * 2**k, 3), dtype="f4")
                      .mean(2) * 255).resize(size, Image.BICUBIC)) / 2**k
        for k in range(6)
    )
    # and grain.
    image = 245 * (image - image.min()) / numpy.ptp(image) + rng.normal(5, 4, image.shape)
    image = image.clip(0, 255)
    colour = numpy.stack([image, 0.9 * image, 0.8 * image], 2).astype("u1")
    Image.fromarray(colour).save(f"{sys.argv[1]}/{name}.jpg", quality=92)
PYTHON
for name in large small; do
    mkdir "$work/$name"
    for i in $(seq 1000); do ln "$work/$name.jpg" "$work/$name/$i.jpg"; done
    echo "$name: $(stat -c %s "$work/$name.jpg") bytes each, $threads threads"
    find "$work/$name" -name '*.jpg' |
        /usr/bin/time -f "peak memory: %M kB" "$sren" predict "$run" - --threads "$threads" --json 2>&1 > /dev/null |
        grep -E "images/s|peak"
done
