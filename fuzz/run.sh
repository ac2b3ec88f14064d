#!/usr/bin/env bash
# Fuzzes every target for so many seconds (60 by default), seeded by the corpus of the tests:
#
#     bash fuzz/run.sh 60
#
# Needs a nightly toolchain and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
for target in weights config idx labels image; do
    mkdir -p "fuzz/corpus/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "crates/sren-lab/tests/corpus/$target" \
        -- -max_total_time="${1:-60}" -rss_limit_mb=4096
done
