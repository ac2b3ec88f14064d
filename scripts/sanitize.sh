#!/usr/bin/env bash
# Miri on the portable loops and AddressSanitizer on the tests of the kernels.
#
#     scripts/sanitize.sh [miri|address]        both without an argument
#
# Both need a nightly toolchain (rustup toolchain install nightly --component miri,rust-src).
# What is not installed is skipped with a message, and the script still succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-all}
case "$which" in all | miri | address) ;; *) echo "usage: $0 [miri|address]" >&2; exit 2 ;; esac

if ! rustc +nightly --version >/dev/null 2>&1; then
    echo "skipped: miri and AddressSanitizer need a nightly toolchain (rustup toolchain install nightly)"
    exit 0
fi
# Separate folders: the flags below would otherwise rebuild everything.
target=${CARGO_TARGET_DIR:-target}/sanitize

run_miri() {
    if ! cargo +nightly miri --version >/dev/null 2>&1; then
        echo "skipped: miri (rustup component add miri rust-src --toolchain nightly)"
        return
    fi
    # Miri has no AVX2, so the portable loops run. Its other flags: rayon's dependencies need tree
    # borrows and leave their threads running; the kernels read an environment variable.
    export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation"
    export RAYON_NUM_THREADS=2
    cargo +nightly miri test --target-dir "$target/miri" -p sren-kernels --lib
    cargo +nightly miri test --target-dir "$target/miri" -p sren-kernels --test patches
    cargo +nightly miri test --target-dir "$target/miri" -p sren-kernels --test pool
    cargo +nightly miri test --target-dir "$target/miri" -p sren-kernels --test limits -- \
        --exact a_channel_number_that_wraps_is_an_error
}

run_address() {
    local host
    host=$(rustc +nightly -vV | sed -n 's/^host: //p')
    case "$host" in
        x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu | *-apple-darwin) ;;
        *) echo "skipped: AddressSanitizer is not supported on $host"; return ;;
    esac
    # An explicit target keeps the flag away from build scripts and procedural macros.
    RUSTFLAGS="-Zsanitizer=address" cargo +nightly test --release --target "$host" \
        --target-dir "$target/address" -p sren-kernels --lib --tests
}

if [ "$which" != address ]; then run_miri; fi
if [ "$which" != miri ]; then run_address; fi
