"""An exported ONNX file beside `sren predict`, on images that find faults.

    bash scripts/onnx_environment.sh
    target/onnx/venv/bin/python scripts/check_onnx.py mnist-sren --count 1000

Exports RUN (or takes `--model FILE`), checks the file with onnx.checker and strict shape inference, then
makes images of eight kinds, predicts them with `sren predict --json` and with an engine, and prints the
largest difference of a probability and of the logits up to a constant. Exits with 1 if a probability
differs by more than 1e-4 in more than one of each 200 images of a kind, or a class where the two most probable are not
that close: the last bits decide whether a second maximum over scale exists, and with it a pose. With the
preprocessing in the graph it is 1e-2 for images that are resized: a value in the middle between two bytes
may be rounded to either, and a byte changes the prediction.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import onnx_images
from onnx_engines import OnnxRuntime, OnnxRuntimeWeb

TOLERANCE = 1e-4
RESIZED = 1e-2
# Of so many images, one may have a pose that the last bits decide.
UNDECIDED = 200
BATCH = 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="folder of a run, or mnist-sren")
    parser.add_argument("--model", help="an exported file [default: exported here]")
    parser.add_argument("--export", default="", help="options for the export here, such as '--taps deform'")
    parser.add_argument("--count", type=int, default=100, help="images per kind")
    parser.add_argument("--data", help="folder of photographs, for networks of three channels")
    parser.add_argument("--engine", choices=["onnxruntime", "web"], default="onnxruntime")
    parser.add_argument("--web-folder", default=onnx_images.ROOT / "target" / "onnx", help="folder with node_modules")
    parser.add_argument("--sren", default=onnx_images.ROOT / "target" / "release" / "sren", help="the command")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser.parse_args()


def checked(path):
    """The metadata of a file that passes ONNX's own checks."""
    import onnx

    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    names = [node.name for node in model.graph.node]
    if len(set(names)) != len(names) or not all(names):
        sys.exit(f"{path}: expected a name of its own for every node")
    return {entry.key: entry.value for entry in model.metadata_props}


def predicted(sren, run, images, classes, folder):
    """Probabilities [n, classes] by `sren predict`."""
    from PIL import Image

    names = []
    for number, image in enumerate(images):
        names.append(str(pathlib.Path(folder) / f"{number}.png"))
        Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(names[-1])
    command = [str(sren), "--quiet", "predict", run, "-", "--top", str(len(classes)), "--json"]
    done = subprocess.run(command, input="\n".join(names), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    place = {name: index for index, name in enumerate(classes)}
    out = np.zeros((len(images), len(classes)))
    for row, line in enumerate(done.stdout.splitlines()):
        for entry in json.loads(line)["top"]:
            out[row, place[entry["class"]]] = entry["probability"]
    return out


def prepared(images, how, layout):
    """Images [n, h, w, c] as bytes -> the input of the file."""
    values = images / np.float32(255) if how["in_graph"] else onnx_images.preprocess(images, how)
    values = values.transpose(0, 3, 1, 2) if layout.startswith("[n, c") else values
    return np.ascontiguousarray(values, np.float32)


def softmax(logits):
    logits = logits.astype(np.float64)
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def compare(ours, logits, allowed):
    theirs = softmax(logits)
    difference = np.abs(ours - theirs).max(1)
    best, other = ours.argmax(1), theirs.argmax(1)
    row = np.arange(len(ours))
    tied = ours[row, best] - ours[row, other] <= TOLERANCE
    # Logits are known from probabilities up to a constant, where these are not too small to be one.
    known = ours > 1e-6
    logs = np.where(known, np.log(np.maximum(ours, 1e-30)), 0)
    logit = np.where(known, logs - np.log(np.maximum(theirs, 1e-30)), 0)
    return {
        "images": len(ours),
        "probability": float(difference.max()),
        "logit": float(np.abs(logit).max()),
        "beyond": int((~(difference <= allowed)).sum()),
        "equal_classes": int((best == other).sum()),
        "other_classes": int((~(best == other) & ~tied).sum()),
    }


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if not model:
            model = f"{folder}/model.onnx"
            export = [str(options.sren), "export", options.run, "-o", model, *options.export.split()]
            subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
        metadata = checked(model)
        classes, how = json.loads(metadata["classes"]), json.loads(metadata["preprocessing"])
        web = options.engine == "web"
        engine = OnnxRuntimeWeb(model, options.web_folder) if web else OnnxRuntime(model)
        channels = 3 if how["circular_mask"] else 1
        rows = {}
        if not options.json:
            print(f"{engine.name} {engine.version} beside sren predict {options.run}")
            print(f"{'images':<26}{'count':>7}{'probability':>14}{'logit':>11}{'beyond':>8}{'equal classes':>15}{'others':>8}")
        kinds = onnx_images.kinds(options.count, how["side"], channels, options.data)
        if how["in_graph"]:
            kinds = itertools.chain(kinds, onnx_images.other_sizes(options.count, how["side"], channels))
        for kind, images in kinds:
            ours = predicted(options.sren, options.run, images, classes, folder)
            # Images of several sizes are a list: one at a time.
            batches = [images[i : i + BATCH] for i in range(0, len(images), BATCH)]
            batches = [image[None] for image in images] if isinstance(images, list) else batches
            parts = [engine.logits(prepared(batch, how, metadata["input"])) for batch in batches]
            allowed = RESIZED if kind == "other sizes" else TOLERANCE
            row = rows[kind] = compare(ours, np.concatenate(parts), allowed)
            if not options.json:
                print(
                    f"{kind:<26}{row['images']:>7}{row['probability']:>14.1e}{row['logit']:>11.1e}"
                    f"{row['beyond']:>8}{row['equal_classes']:>15}{row['other_classes']:>8}"
                )
    passed = all(row["beyond"] <= row["images"] // UNDECIDED for row in rows.values())
    passed &= all(row["other_classes"] == 0 for kind, row in rows.items() if kind != "other sizes")
    if options.json:
        print(json.dumps({"engine": engine.name, "version": engine.version, "kinds": rows, "passed": passed}))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
