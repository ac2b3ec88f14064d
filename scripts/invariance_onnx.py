"""How much the predictions of exported files change if the image is rotated or scaled.

    target/onnx/venv/bin/python scripts/invariance_onnx.py sren.onnx cnn.onnx [--count 200]

Digits on the canvas of the network, rotated by 15 to 345 degrees and scaled by 0.7 to 1.6 (bilinear), run by
onnxruntime. Printed for each file and transform: the mean change of the logits, relative to their
spread over classes; half the summed change of the probabilities; the accuracy.
"""

import argparse
import json

import numpy as np

import onnx_images
from onnx_engines import OnnxRuntime

ANGLES = [15, 45, 90, 180, 270, 345]
SCALES = [0.7, 0.85, 1.2, 1.4, 1.6]
BATCH = 50


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", help="exported files, for digits")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser.parse_args()


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def metadata(path):
    import onnx

    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def measured(engine, images, labels):
    def logits(angle, scale):
        n = len(images)
        moved = images
        if (angle, scale) != (0, 1):
            moved = onnx_images.warp(images, np.full(n, np.radians(angle)), np.full(n, scale))
        moved = np.ascontiguousarray(moved.transpose(0, 3, 1, 2), np.float32)
        return np.concatenate([engine.logits(moved[i : i + BATCH]) for i in range(0, n, BATCH)]).astype(np.float64)

    def row(name, found):
        # A constant added to all logits changes nothing.
        centred, known = (z - z.mean(1, keepdims=True) for z in (found, still))
        change = np.linalg.norm(centred - known, axis=1) / np.linalg.norm(known, axis=1)
        moved = 0.5 * np.abs(softmax(found) - softmax(still)).sum(1)
        accuracy = 100 * (found.argmax(1) == labels).mean()
        return {"transform": name, "logits": change.mean(), "probability": moved.mean(), "accuracy": accuracy}

    still = logits(0, 1)
    rows = [row("as they are", still)]
    rows += [row(f"{angle} degrees", logits(angle, 1)) for angle in ANGLES]
    return rows + [row(f"scale {scale}", logits(0, scale)) for scale in SCALES]


def main():
    options = arguments()
    digits, labels = onnx_images.digits(options.count)
    results = {}
    for path in options.models:
        how = json.loads(metadata(path)["preprocessing"])
        images = onnx_images.preprocess(digits[..., None], how)
        results[path] = measured(OnnxRuntime(path), images, labels)
    if options.json:
        print(json.dumps(results))
        return
    for path, rows in results.items():
        print(f"{path}, {options.count} digits")
        print(f"{'':<16}{'logits':>10}{'probability':>14}{'accuracy':>11}")
        for row in rows:
            numbers = f"{row['logits']:>10.3f}{row['probability']:>14.3f}{row['accuracy']:>9.1f} %"
            print(f"{row['transform']:<16}{numbers}")


if __name__ == "__main__":
    main()
