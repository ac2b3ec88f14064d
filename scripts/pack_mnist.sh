#!/usr/bin/env bash
# Packs the four original files of MNIST for crates/sren-data/mnist:
#
#     bash scripts/pack_mnist.sh FOLDER
#
# FOLDER holds train-images-idx3-ubyte and the other three, unpacked. Needs zstd 1.5.
set -euo pipefail
from=$1
to=$(dirname "$0")/../crates/sren-data/mnist
(cd "$from" && md5sum --check --strict --quiet) <<'SUMS'
6bbc9ace898e44ae57da46a324031adb  train-images-idx3-ubyte
a25bea736e30d166cdddb491f175f624  train-labels-idx1-ubyte
2646ac647ad5339dbf082846283269ea  t10k-images-idx3-ubyte
27ae3e4e09519cfbb04c329615203637  t10k-labels-idx1-ubyte
SUMS
for name in {train,t10k}-images-idx3-ubyte {train,t10k}-labels-idx1-ubyte; do
    zstd --quiet --force --ultra -22 --long=27 --check "$from/$name" -o "$to/$name.zst"
done
