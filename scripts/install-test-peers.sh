#!/usr/bin/env bash
# Prepares target/peers: a Python environment with independent implementations that the tests check Postrider's
# output against. Does nothing, quickly, if it is complete.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(joserfc==1.8.0)
folder=target/peers

complete() {
    [ -x "$folder/bin/python" ] && "$folder/bin/python" - "${packages[@]}" <<'PYTHON' 2>/dev/null
import sys, importlib.metadata as metadata
for package in sys.argv[1:]:
    name, version = package.split("==")
    assert metadata.version(name) == version
PYTHON
}

if complete; then
    exit
fi
echo "Preparing $folder: ${packages[*]}"
make_environment() { rm -rf "$folder" && python3 -m venv "$folder" 2>/dev/null; }
if ! make_environment; then
    as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
    if command -v apt-get >/dev/null; then
        as_root apt-get update -qq </dev/null || true
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends python3-venv </dev/null >/dev/null || true
    fi
    if ! make_environment; then
        echo "Please install Python 3 with venv: apt-get install python3-venv" >&2
        exit 1
    fi
fi
"$folder/bin/python" -m pip --disable-pip-version-check install --quiet "${packages[@]}"
