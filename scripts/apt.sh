# What the install scripts share: packages with apt-get, as root or by sudo without a password. To be sourced.
# shellcheck shell=bash

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

apt_updated=
# Removes nothing: where a package cannot stand beside one that is there, it is not installed.
install() { # packages
    may_install || return 1
    echo "Installing with apt-get: $*"
    if [ -z "$apt_updated" ]; then
        as_root apt-get update -qq </dev/null || echo "apt-get update failed; going on with the lists at hand" >&2
        apt_updated=yes
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-remove --no-install-recommends "$@" \
        </dev/null >/dev/null
}

# The same for packages whose own habit is to start services, at once and with every boot. What policy-rc.d forbids,
# Debian's maintainer scripts do not start, with systemd or without; where the machine has a policy of its own, that one
# holds. Afterwards the services are taken out of the boot, which only changes links.
install_without_services() ( # services, as one word, packages
    services=$1
    shift
    policy=/usr/sbin/policy-rc.d
    if may_install && [ ! -e "$policy" ]; then
        trap 'as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
    fi
    install "$@" || exit 1
    for service in $services; do
        if command -v systemctl >/dev/null; then as_root systemctl --quiet disable "$service" 2>/dev/null || true; fi
        if command -v update-rc.d >/dev/null; then as_root update-rc.d "$service" disable 2>/dev/null || true; fi
    done
)
