#!/bin/sh
# postfix.sh FOLDER USER PASSWORD DOMAIN READER: runs the Postfix that is configured in FOLDER/conf, as root, until the
# end of its input, and then takes FOLDER away. A line "restart" restarts it; each start is answered with a line
# "started" and a process id. Whoever holds the other end of the input may die as it likes: nothing is left. READER owns
# the mail.
set -eu
folder=$1 user=$2 password=$3 domain=$4 reader=$5
master=/usr/lib/postfix/sbin/master

# Whether a process of the group is left that has not ended; one that nobody has taken note of yet has.
is_left() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v group="$1" '$5 == group && $3 != "Z" { left = 1 } END { exit !left }'
}
# Its daemons hold its ports a little longer.
stop() {
    kill -TERM "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
    tries=0
    while is_left "$running" && [ "$tries" -lt 250 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    running=
}
finish() {
    trap - EXIT
    [ -z "$running" ] || stop
    rm -rf "$folder"
}
running=
trap finish EXIT
trap 'exit 143' INT TERM HUP

# The owners and modes that Postfix's own set-up gives.
chown -R root:root "$folder"
queue=$folder/queue
mkdir -m 755 "$queue" "$queue/pid"
for name in active bounce corrupt defer deferred flush hold incoming private saved trace; do
    mkdir -m 700 "$queue/$name"
    chown postfix "$queue/$name"
done
mkdir -m 730 "$queue/maildrop"
mkdir -m 710 "$queue/public"
chown postfix:postdrop "$queue/maildrop" "$queue/public"
mkdir -m 700 "$folder/data"
chown postfix "$folder/data"

chown "$reader:$reader" "$folder/mail"
touch "$folder/maillog"
chmod 644 "$folder/maillog"

printf '%s' "$password" | saslpasswd2 -p -c -f "$folder/conf/sasl/sasldb2" -u "$domain" "$user"
chgrp postfix "$folder/conf/sasl/sasldb2"
chmod 640 "$folder/conf/sasl/sasldb2"

# Postfix waits a second or two before it reads a file that was written just now, as it may be half written.
find "$folder/conf" -type f -exec touch -d '1 minute ago' {} +

start() {
    "$master" -c "$folder/conf" -s <&- >/dev/null 2>>"$folder/stderr" &
    running=$!
    echo "started $running"
}
start
while read -r line; do
    case $line in
    restart)
        stop
        start
        ;;
    esac
done
