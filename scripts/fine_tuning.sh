#!/usr/bin/env bash
# What fine-tuning gives with 10 images a class: trains on the first half of the classes of DATA (folders
# train and test), then on 10 images of each other class, from scratch and from those weights.
#
#   bash scripts/fine_tuning.sh DATA [OUT] [SREN]
set -euo pipefail
data=$(realpath "$1")
out=${2:-runs/fine-tuning}
sren=$(realpath "${3:-target/release/sren}")
threads=${THREADS:-2}
mkdir -p "$out"
mapfile -t classes < <(ls "$data/train")
half=$((${#classes[@]} / 2))
for i in "${!classes[@]}"; do
    part=$([ "$i" -lt $half ] && echo known || echo new)
    for split in train test; do
        mkdir -p "$out/$part/$split"
        ln -sfn "$data/$split/${classes[$i]}" "$out/$part/$split/${classes[$i]}"
    done
done
new=$((${#classes[@]} - half))
train() { "$sren" -q train --threads "$threads" --seed 1 "$@" | sed -n '1p;/^upright  /p;/^ood  /p'; }
echo "trained on the first $half classes:"
train --data "$out/known" --epochs 10 --out "$out/known-run"
few=(--data "$out/new" --images $((10 * new)) --epochs 40 --batch 16)
echo "$new other classes, 10 images each, from scratch:"
train "${few[@]}" --out "$out/scratch"
echo "from those weights:"
train "${few[@]}" --from "$out/known-run" --out "$out/tuned"
echo "from those weights, frozen backbone:"
train "${few[@]}" --from "$out/known-run" --freeze-backbone --out "$out/frozen"
