#!/usr/bin/env bash
# Fuzzes each target for some seconds (20 by default), from the committed corpus: scripts/fuzz.sh [SECONDS [TARGET...]].
# Ends with an error at the first input that breaks a target, and says where it is kept and how to run it again.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
shift || true
tools=$PWD/target/tools
export PATH="$tools/bin:$PATH"

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "Fuzzing needs a nightly compiler: rustup toolchain install nightly --profile minimal" >&2
    exit 1
fi
if ! command -v cargo-fuzz >/dev/null; then
    echo "Installing cargo-fuzz into target/tools"
    cargo install --quiet --locked --root "$tools" cargo-fuzz
fi
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    mapfile -t targets < <(cargo +nightly fuzz list)
fi
# The code is safe Rust: its own checks find what a sanitizer would, and builds are shorter without one.
for target in "${targets[@]}"; do
    cargo +nightly fuzz build --sanitizer none "$target"
done
for target in "${targets[@]}"; do
    found=$PWD/fuzz/artifacts/$target
    work=$PWD/target/fuzz-corpus/$target
    mkdir -p "$found" "$work"
    echo "== $target: the corpus, then $seconds s"
    cargo +nightly fuzz run --sanitizer none "$target" "$work" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 2>&1 |
        sed '/###### Recommended dictionary/,/###### End of recommended dictionary/d'
done
