#!/usr/bin/env bash
# Prepares what the tests check Postrider against: target/peers, a Python environment with independent implementations,
# and PgBouncer, which the tests start by themselves. Does nothing, quickly, if all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(joserfc==1.8.0 dkimpy==1.1.8 dnspython==2.9.2 PyNaCl==1.6.2)
folder=target/peers

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
install() { # packages
    command -v apt-get >/dev/null || return 1
    as_root apt-get update -qq </dev/null || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

have_pgbouncer() { [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null; }

# The package's own habit is to start a service, at once and with every boot. What policy-rc.d forbids, Debian's
# maintainer scripts do not start, with systemd or without; where the machine has a policy of its own, that one holds.
# Afterwards the service is taken out of the boot, which only changes links.
install_pgbouncer() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
    fi
    install pgbouncer || exit 1
    if command -v systemctl >/dev/null; then as_root systemctl --quiet disable pgbouncer 2>/dev/null || true; fi
    if command -v update-rc.d >/dev/null; then as_root update-rc.d pgbouncer disable 2>/dev/null || true; fi
)

complete() {
    [ -x "$folder/bin/python" ] && "$folder/bin/python" - "${packages[@]}" <<'PYTHON' 2>/dev/null
import sys, importlib.metadata as metadata
for package in sys.argv[1:]:
    name, version = package.split("==")
    assert metadata.version(name) == version
PYTHON
}

if ! have_pgbouncer; then
    echo "Installing PgBouncer with apt-get"
    if ! install_pgbouncer || ! have_pgbouncer; then
        echo "Please install PgBouncer, which the tests start by themselves: apt-get install pgbouncer" >&2
        exit 1
    fi
fi
if complete; then
    exit
fi
echo "Preparing $folder: ${packages[*]}"
make_environment() { rm -rf "$folder" && python3 -m venv "$folder" 2>/dev/null; }
if ! make_environment; then
    install python3-venv || true
    if ! make_environment; then
        echo "Please install Python 3 with venv: apt-get install python3-venv" >&2
        exit 1
    fi
fi
"$folder/bin/python" -m pip --disable-pip-version-check install --quiet "${packages[@]}"
