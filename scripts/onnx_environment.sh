#!/usr/bin/env bash
# What the scripts around ONNX files need, into target/onnx: onnxruntime in a virtual environment of
# Python, and onnxruntime-web, the engine of browsers, for node. Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=target/onnx
mkdir -p "$folder"
# Debian has them in packages of their own.
if ! (command -v npm && python3 -c 'import ensurepip') > /dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        apt-get update -q > /dev/null
        apt-get install -y -q python3-venv nodejs npm > /dev/null
    fi
fi
if [ ! -e "$folder/venv/ready" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet numpy onnx onnxruntime pillow zstandard
    touch "$folder/venv/ready"
fi
if [ ! -d "$folder/node_modules/onnxruntime-web" ]; then
    echo '{"private": true}' > "$folder/package.json"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" onnxruntime-web
fi
