#!/usr/bin/env bash
# with-postgres.sh CMD...: runs CMD with POSTRIDER_TEST_DATABASE_URL naming a PostgreSQL that was started for it and
# that goes, data and all, when CMD ends or this script is interrupted. Exit status: CMD's.
# Which PostgreSQL: see find-postgres.sh; POSTRIDER_PG_BIN decides.
set -euo pipefail

binaries=$("$(dirname "$0")/find-postgres.sh") || {
    echo "with-postgres.sh: no PostgreSQL server found; run scripts/install-prerequisites.sh" >&2
    exit 1
}
# Short, as a socket's path may have 107 bytes.
folder=$(mktemp -d /tmp/postrider-tests-XXXXXX)
chmod 755 "$folder"
server=
command=

cleanup() {
    trap - EXIT
    trap '' INT TERM HUP
    if [ -n "$server" ] && kill -INT "$server" 2>/dev/null; then
        local tenths=0
        while kill -0 "$server" 2>/dev/null; do
            [ "$tenths" != 200 ] || kill -QUIT "$server" 2>/dev/null || true
            tenths=$((tenths + 1))
            sleep 0.1
        done
    fi
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# PostgreSQL refuses to run as root: then as another user, or, where no other user may read the binaries, as root in a
# user namespace that shows root as one.
as_server=(env -u PGDATA -u PGPORT -u PGOPTIONS LC_ALL=C)
mkdir -m 700 "$folder/data" "$folder/run"
if [ "$(id -u)" = 0 ]; then
    account=$(id -u postgres 2>/dev/null && id -g postgres || { id -u nobody && id -g nobody; })
    user=${account%%$'\n'*}
    group=${account##*$'\n'}
    switched=(setpriv --reuid "$user" --regid "$group" --clear-groups)
    # By way of env, as setpriv itself still has root's capabilities when it starts a program.
    if "${switched[@]}" env "$binaries/initdb" --version >/dev/null 2>&1; then
        as_server+=("${switched[@]}")
        chown "$user:$group" "$folder/data" "$folder/run"
    else
        as_server+=(unshare --user --map-user="$user" --map-group="$group")
    fi
fi
# Ends with this script even if that is killed outright.
if command -v setpriv >/dev/null; then
    as_server+=(setpriv --pdeathsig INT)
fi

fail() {
    echo "with-postgres.sh: $1; the end of its log:" >&2
    tail -n 20 "$folder/log" >&2
    exit 1
}
cd "$folder"
"${as_server[@]}" "$binaries/initdb" -D "$folder/data" -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync \
    --no-instructions </dev/null >"$folder/log" 2>&1 || fail "initdb failed"
# Off: what only matters to those who want their data back after a crash of the machine. The tests' crashes are of
# Postrider's processes, which this does not touch.
settings=(
    -c fsync=off -c synchronous_commit=off -c full_page_writes=off
    -c max_connections=300 -c listen_addresses= -c port=5432 -k "$folder/run"
)
setsid "${as_server[@]}" "$binaries/postgres" -D "$folder/data" "${settings[@]}" </dev/null >>"$folder/log" 2>&1 &
server=$!
cd "$OLDPWD"
ready=
for _ in $(seq 600); do
    # Its last line says so; see pg_ctl.
    if grep -qs '^ready' "$folder/data/postmaster.pid"; then
        ready=yes
        break
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -n "$ready" ] || fail "PostgreSQL did not start"

export POSTRIDER_TEST_DATABASE_URL="postgresql:///postgres?host=$folder/run&port=5432&user=postgres&sslmode=disable"
# In the background, as a shell answers no signal while it waits for a command in the foreground. A shell lets what it
# runs there ignore interrupts and reads it no input: both are undone.
env --default-signal=INT,QUIT "$@" <&0 &
command=$!
interrupted=
# A terminal's Ctrl-C reaches the command without help.
trap 'interrupted=130; [ -t 0 ] || kill -INT "$command" 2>/dev/null || true' INT
trap 'interrupted=143; kill -TERM "$command" 2>/dev/null || true' TERM HUP
while :; do
    status=0
    wait "$command" || status=$?
    kill -0 "$command" 2>/dev/null || break
done
exit "${interrupted:-$status}"
