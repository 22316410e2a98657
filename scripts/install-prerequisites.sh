#!/usr/bin/env bash
# Makes sure of what building and trying Postrider takes beside Rust: a C compiler, make, and the binaries of a
# PostgreSQL server of 14 or newer. Installs what is missing with apt-get where it may (as root, or by sudo without a
# password); never starts a server, nor sets one up. Does nothing, quickly, if all is there.
set -euo pipefail
scripts=$(dirname "$0")
# shellcheck source=scripts/apt.sh
. "$scripts/apt.sh"

have_compiler() { command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null; }
have_make() { command -v make >/dev/null; }
have_postgres() { "$scripts/find-postgres.sh" >/dev/null; }

# The package's own habit is to set up a cluster and start it. An extra file in the folder that its configuration
# includes stops that, and goes afterwards; where there is a configuration already, it is not touched.
install_postgres() (
    common=/etc/postgresql-common
    extra=$common/createcluster.d/postrider-no-main-cluster.conf
    as_root mkdir -p "$common/createcluster.d"
    trap 'as_root rm -f "$extra"' EXIT
    echo 'create_main_cluster = false' | as_root tee "$extra" >/dev/null
    install postgresql
)

if ! have_compiler || ! have_make; then
    missing=()
    have_compiler || missing+=(gcc libc6-dev)
    have_make || missing+=(make)
    if ! install "${missing[@]}"; then
        echo "Please install: ${missing[*]}" >&2
        exit 1
    fi
fi

if ! have_postgres; then
    if [ -n "${POSTRIDER_PG_BIN:-}" ]; then
        exit 1 # find-postgres.sh has said why.
    fi
    if may_install && install_postgres && have_postgres; then
        :
    elif "$scripts/get-postgres.sh" && have_postgres; then
        :
    else
        echo "No PostgreSQL server (14 or newer) was found or could be installed: apt-get install postgresql" >&2
        exit 1
    fi
    echo "PostgreSQL: $("$scripts/find-postgres.sh")"
fi
