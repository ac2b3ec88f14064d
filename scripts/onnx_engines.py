"""Engines that run an exported file: each maps images [n, ...] to logits [n, classes]."""

import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

SCRIPTS = pathlib.Path(__file__).resolve().parent


class OnnxRuntime:
    """onnxruntime on the CPU, one thread."""

    name = "onnxruntime"

    def __init__(self, model):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.version = onnxruntime.__version__

    def logits(self, images):
        return self.session.run(["logits"], {"images": images})[0]

    def milliseconds(self, images):
        start = time.perf_counter()
        self.logits(images)
        return 1e3 * (time.perf_counter() - start)


class OnnxRuntimeWeb:
    """onnxruntime-web under node: the wasm that browsers run, one thread. `folder` has node_modules."""

    name = "onnxruntime-web"

    def __init__(self, model, folder):
        program = ["node", str(SCRIPTS / "onnx_web.mjs"), str(pathlib.Path(model).resolve())]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(program, cwd=folder, **pipes)
        self.folder = tempfile.TemporaryDirectory()
        package = pathlib.Path(folder) / "node_modules" / "onnxruntime-web" / "package.json"
        self.version = json.loads(package.read_text())["version"]
        self.written = {}

    def ask(self, images, output=None):
        # The array itself is kept: a freed one's id may be another's.
        file, _ = self.written.get(id(images), (None, None))
        if file is None:
            file = f"{self.folder.name}/{len(self.written)}.f32"
            np.ascontiguousarray(images, np.float32).tofile(file)
            self.written[id(images)] = (file, images)
        line = {"input": file, "shape": list(images.shape), "output": output}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("onnxruntime-web ended")
        return float(answer)

    def logits(self, images):
        output = f"{self.folder.name}/logits.f32"
        self.ask(images, output)
        return np.fromfile(output, np.float32).reshape(len(images), -1)

    def milliseconds(self, images):
        return self.ask(images)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
