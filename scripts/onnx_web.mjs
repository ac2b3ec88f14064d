// Runs an ONNX file in onnxruntime-web, the engine of browsers (wasm, one thread), under node.
//
//     npm install onnxruntime-web
//     node scripts/onnx_web.mjs MODEL
//
// Reads lines of JSON from standard input: {"input": FILE, "shape": [n, ...], "output": FILE}. The files
// hold f32; the output, optional, gets the logits. Answers each line with milliseconds. The package is
// looked for in the present folder.

import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const ort = createRequire(join(process.cwd(), 'package.json'))('onnxruntime-web');
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(process.argv[2]), {
  executionProviders: ['wasm'],
});
const inputs = new Map();

function tensor(file, shape) {
  const key = `${file} ${shape}`;
  if (!inputs.has(key)) {
    const bytes = readFileSync(file);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    inputs.set(key, new ort.Tensor('float32', Float32Array.from(values), shape));
  }
  return inputs.get(key);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { input, shape, output } = JSON.parse(line);
  const images = tensor(input, shape);
  const start = performance.now();
  const { logits } = await session.run({ images }, ['logits']);
  const milliseconds = performance.now() - start;
  if (output) writeFileSync(output, Buffer.from(logits.data.buffer, logits.data.byteOffset, logits.data.byteLength));
  console.log(milliseconds);
}
