#!/usr/bin/env bash
# Prepares what the tests check Postrider against: target/peers, a Python environment with independent implementations,
# and servers that the tests start by themselves: PgBouncer, Apache with mod_auth_openidc, Postfix with Cyrus SASL.
# Does nothing, quickly, if all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/apt.sh

packages=(joserfc==1.8.0 dkimpy==1.1.8 dnspython==2.9.2 PyNaCl==1.6.2)
folder=target/peers

# A server's folder is not in every user's PATH.
have() { [ -x "/usr/sbin/$1" ] || command -v "$1" >/dev/null; }

have_pgbouncer() { have pgbouncer; }
install_pgbouncer() { install_without_services pgbouncer pgbouncer; }

have_apache() { have apache2 && [ -e /usr/lib/apache2/modules/mod_auth_openidc.so ]; }
# apache2-bin, which the module needs, is the program alone; the service would come with the package apache2.
install_apache() { install libapache2-mod-auth-openidc; }

have_postfix() {
    have postfix && have saslpasswd2 && compgen -G '/usr/lib/*/sasl2/libplain.so' >/dev/null
}
# "No configuration" leaves /etc/postfix to whoever wants this machine to have mail.
install_postfix() {
    may_install || return 1
    have postfix || echo 'postfix postfix/main_mailer_type select No configuration' | as_root debconf-set-selections
    install_without_services "postfix saslauthd" postfix sasl2-bin libsasl2-modules
}

ensure() { # function suffix, name for people, packages
    "have_$1" && return
    if ! "install_$1" || ! "have_$1"; then
        echo "Please install $2, which the tests start by themselves: apt-get install $3" >&2
        exit 1
    fi
}
ensure pgbouncer PgBouncer pgbouncer
ensure apache "Apache with mod_auth_openidc" libapache2-mod-auth-openidc
ensure postfix "Postfix with Cyrus SASL" "postfix sasl2-bin libsasl2-modules"

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
    install python3-venv || true
    if ! make_environment; then
        echo "Please install Python 3 with venv: apt-get install python3-venv" >&2
        exit 1
    fi
fi
"$folder/bin/python" -m pip --disable-pip-version-check install --quiet "${packages[@]}"
