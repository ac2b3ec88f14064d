"""Latency of exported networks: onnxruntime, onnxruntime-web under node, and ours, one thread each.

    bash scripts/onnx_environment.sh
    target/onnx/venv/bin/python scripts/bench_onnx.py mnist-sren [RUN ...]

One run: all take turns batch by batch, and the least time of each counts. Each line shows how many times
as long an engine takes as our own program does. Images are the bundled test digits, on the canvas of the
run; for colour, on grey. The Rust program is started here, and built if needed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import onnx_images
from onnx_engines import OnnxRuntime, OnnxRuntimeWeb


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", help="folders of runs, or mnist-sren")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--serve", help="the Rust program, if it is built: target/release/deps/serve-...")
    parser.add_argument("--sren", default=onnx_images.ROOT / "target" / "release" / "sren")
    parser.add_argument("--web-folder", default=onnx_images.ROOT / "target" / "onnx")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    return parser.parse_args()


class Ours:
    """The resident Rust program: a line in asks for a batch, a line out has milliseconds."""

    def __init__(self, built):
        cargo = ["cargo", "bench", "-q", "--workspace", "--bench", "serve", "--"]
        program = [built] if built else cargo
        environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        program = [*program, "--serve"]
        self.process = subprocess.Popen(program, cwd=onnx_images.ROOT, env=environment, **pipes)
        if not self.process.stdout.readline().startswith("["):
            sys.exit("bench_onnx.py: the Rust program did not start")

    def milliseconds(self, run, file, batch):
        self.process.stdin.write(f"infer {run} {file} {batch}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def canvases(count, how):
    """Digits [n, h, w, c] as the network of a run sees them."""
    if not how["circular_mask"]:
        return onnx_images.preprocess(onnx_images.digits(count)[0][..., None], how)
    random = np.random.default_rng(1)
    return onnx_images.preprocess(onnx_images.coloured(random, onnx_images.digits(count)[0], how["side"]), how)


def exported(sren, run, file, taps):
    import onnx

    command = [str(sren), "export", run, "-o", file, "--taps", taps]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    model = onnx.load(file)
    is_deformed = any(node.op_type == "DeformConv" for node in model.graph.node)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return json.loads(metadata["preprocessing"]), is_deformed


def show(row):
    print(
        f"{row['run'][-27:]:<28}{row['batch']:>6}  {row['engine']:<26}{row['taps']:<12}"
        f"{row['ratio']:>10.2f}{row['milliseconds']:>10.1f}{row['ours_milliseconds']:>10.1f}",
        flush=True,
    )


def main():
    options = arguments()
    ours, rows = Ours(options.serve), []
    if not options.json:
        print(f"{'run':<28}{'batch':>6}  {'engine':<26}{'taps':<12}{'times ours':>10}{'ms':>10}{'ours, ms':>10}")
    for run in options.runs:
        path = run if run == "mnist-sren" else os.path.abspath(run)
        with tempfile.TemporaryDirectory() as folder:
            grid, deform = f"{folder}/grid.onnx", f"{folder}/deform.onnx"
            how, _ = exported(options.sren, path, grid, "grid")
            _, is_deformed = exported(options.sren, path, deform, "deform")
            engines = [(OnnxRuntime(grid), "GridSample")]
            if is_deformed:
                engines.append((OnnxRuntime(deform), "DeformConv"))
            engines.append((OnnxRuntimeWeb(grid, options.web_folder), "GridSample"))
            for batch in map(int, options.batches.split(",")):
                images = np.ascontiguousarray(canvases(batch, how), np.float32)
                file = f"{folder}/{batch}.f32"
                images.tofile(file)
                images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
                best = [float("inf")] * (len(engines) + 1)
                for turn in range(options.repetitions + 1):
                    times = [ours.milliseconds(path, file, batch)]
                    times += [engine.milliseconds(images) for engine, _ in engines]
                    if turn > 0:  # the first warms up
                        best = [min(pair) for pair in zip(best, times)]
                for (engine, taps), time in zip(engines, best[1:]):
                    name = f"{engine.name} {engine.version}"
                    ratio = time / best[0]
                    rows.append({"run": run, "batch": batch, "engine": name, "taps": taps, "ratio": ratio})
                    rows[-1].update({"milliseconds": time, "ours_milliseconds": best[0]})
                    if not options.json:
                        show(rows[-1])
            engines[-1][0].close()
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
