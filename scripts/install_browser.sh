#!/usr/bin/env bash
# Installs what the tests of the page need, where it is absent: Debian's Chromium, Node, and
# playwright-core in target/browser. Without them these tests are skipped.
#
#   bash scripts/install_browser.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.65.1
folder=target/browser
packages=()
command -v chromium > /dev/null || packages+=(chromium)
command -v node > /dev/null || packages+=(nodejs)
command -v npm > /dev/null || packages+=(npm)
if [ ${#packages[@]} -gt 0 ]; then
    if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
        echo "tests of the page are skipped: ${packages[*]} not installed" >&2
        exit 0
    fi
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${packages[@]}"
fi
if ! grep -qs "\"version\": \"$version\"" "$folder/node_modules/playwright-core/package.json"; then
    npm install --no-audit --no-fund --no-save --prefix "$folder" "playwright-core@$version"
fi
