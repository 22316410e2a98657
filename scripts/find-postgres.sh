#!/usr/bin/env bash
# Prints the folder of the PostgreSQL server binaries (initdb, postgres; 14 or newer) that Postrider uses, searching
# where `Binaries::find` in src/private_postgres/ does: POSTRIDER_PG_BIN alone if set, else PATH, the newest of the
# distribution's, and where get-postgres.sh unpacks. Exit status 1 if there are none.
#   --unpacked   prints where get-postgres.sh unpacks by default instead
set -euo pipefail

if [ "$(id -u)" = 0 ]; then
    unpacked=/usr/local/lib/postrider/postgres
else
    unpacked=${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}/postrider/postgres
fi
if [ "${1:-}" = --unpacked ]; then
    echo "$unpacked"
    exit
fi

fits() { # folder
    [ -x "$1/initdb" ] && [ -x "$1/postgres" ] || return 1
    local version
    version=$("$1/postgres" --version 2>/dev/null) || return 1
    version=${version#*"(PostgreSQL) "}
    version=${version%%[!0-9]*}
    [ "${version:-0}" -ge 14 ]
}

candidates() {
    local folder
    if [ -n "${POSTRIDER_PG_BIN:-}" ]; then
        readlink -f "$POSTRIDER_PG_BIN"
        return
    fi
    local IFS=:
    for folder in $PATH; do
        if [ -e "$folder/initdb" ]; then dirname "$(readlink -f "$folder/initdb")"; fi
    done
    printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin | sed -E 's/.*[/-]([0-9]+)\/bin$/\1 &/' | sort -rn | cut -d' ' -f2
    echo "$unpacked/bin"
}

while IFS= read -r folder; do
    if fits "$folder"; then
        echo "$folder"
        exit
    fi
done < <(candidates)
if [ -n "${POSTRIDER_PG_BIN:-}" ]; then
    echo "POSTRIDER_PG_BIN=$POSTRIDER_PG_BIN holds no PostgreSQL server of 14 or newer" >&2
fi
exit 1
