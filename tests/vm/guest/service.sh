#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# service.sh [short]: etraced with the real module, and ordinary users who ask it: who may trace and
# sees what, or also how sessions end. User 65534 is in the group of its socket, 65533 is not.
# Leaves in WORK/service, or WORK/service-short: traces and stats, what the commands said, and `steps` (name, status).
set -u
OUT=$WORK/service${1:+-$1}
. ./guest/python.sh

MEMBER="/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups"
STRANGER="/usr/bin/setpriv --reuid=65533 --regid=65533 --clear-groups"
RUN="etrace run --backend kmod"
user=$HOME_/user
mkdir $user $HOME_/other
chown 65534:65534 $user
chown 65533:65533 $HOME_/other
cd /

# wait_until COMMAND...: until it succeeds, half a minute
wait_until() {
	i=0
	until "$@" 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 300 ] || { echo "FAILED to wait for: $*"; failed=1; return; }
		sleep 0.1
	done
}

serve() {
	rm -f /run/etrace/etraced.sock
	etraced --listen --group "$(stat -c %G $user)" --idle 1000 2>>"$OUT/etraced.err" &
	daemon=$!
	wait_until test -S /run/etrace/etraced.sock
}

# of session.json that has the number of a session
recording() { grep -q '"session": [1-9]' /run/etrace/session.json; }
over() { ! test -e /run/etrace/session.json; }

# clean NAME: nothing of a session is left but the socket, the lock and the module
clean() {
	left=$(ls -A /run/etrace | grep -v -e '^lock$' -e '^etraced.sock$')
	[ ! -d /sys/kernel/tracing/instances/etrace ] || left="$left instance"
	left="$left$(pidof etrace_cat)"
	echo "$1-clean $([ -z "$left" ] && echo 0 || echo 1) 0 $left" >>"$OUT/steps"
	[ -z "$left" ] || { echo "FAILED $1: left: $left"; failed=1; }
}

# keep NAME: the trace of $user/NAME
keep() {
	cp $user/$1/.nfsdb "$OUT/$1.nfsdb"
	cp $user/$1/.nfsdb.stats "$OUT/$1.nfsdb.stats"
}

step none 125 $MEMBER $RUN -o $user/none -- true
serve
step missing 125 $MEMBER $RUN -o $user/missing -- true
insmod $HOME_/etrace.ko || exit 1

# a build of a member; auto finds the way by itself
step plain 0 $MEMBER $RUN -o $user/plain -- sh -c 'cat /etc/hostname; exit 0'
clean plain
keep plain
stat -c '%u %g %a %n' $user/plain/.nfsdb $user/plain/.nfsdb.stats >"$OUT/owners"
step auto 0 $MEMBER etrace run -o $user/auto -- true
keep auto
step status7 7 $MEMBER $RUN --env -o $user/env -- sh -c 'exit 7'
keep env
step stranger 125 $STRANGER $RUN -o $HOME_/other -- true

# privilege boundaries: set-uid, set-gid, unreadable; a secret that its user cannot see
mkdir $HOME_/suid $HOME_/secret
mount -t tmpfs -o suid,exec,mode=755 none $HOME_/suid
echo secret >$HOME_/secret/hidden-name
chmod 0700 $HOME_/secret
echo public | tee $HOME_/by-gid >$HOME_/by-mode
for kind in 4755 2755 0711; do
	cp /bin/cat $HOME_/suid/cat$kind
	chmod $kind $HOME_/suid/cat$kind
done
step suid 0 $MEMBER $RUN -o $user/suid -- sh -c "$HOME_/suid/cat4755 $HOME_/secret/hidden-name
	$HOME_/suid/cat2755 $HOME_/by-gid; $HOME_/suid/cat0711 $HOME_/by-mode; cat /etc/hostname"
clean suid
keep suid
# the same, traced by root: nothing is left out
step suid-root 0 $RUN -o $HOME_/rootsuid -- $MEMBER sh -c "$HOME_/suid/cat2755 $HOME_/by-gid; true"
cp $HOME_/rootsuid/.nfsdb "$OUT/suid-root.nfsdb"

# processes that are not the caller's
cat >$HOME_/foreign.py <<EOF
import os, subprocess, sys
from etrace.capture.remote import protocol, service
trace = os.open("$user/foreign", os.O_RDWR | os.O_CREAT, 0o600)
programs = [["$HOME_/suid/cat4755"], ["$HOME_/suid/cat2755"], ["$HOME_/suid/cat0711"]]
started = [subprocess.Popen(program, stdin=subprocess.PIPE) for program in programs]
for pid in (1, *(process.pid for process in started)):
    with service.connect() as sock:
        protocol.send(sock, protocol.request(protocol.TRACE), (trace, os.pidfd_open(pid)))
        print(protocol.receive(sock, 1 << 16)[0]["error"])
assert os.fstat(trace).st_size == 0
EOF
step foreign 0 $MEMBER $PYTHON -s $HOME_/foreign.py
clean foreign

if [ "${1-}" != short ]; then
	. ./guest/service_ends.sh
fi
step rmmod 0 rmmod etrace
kill -TERM $daemon
wait $daemon
rm /run/etrace/etraced.sock # systemd's to keep; other phases look for what is left

cat "$OUT/steps"
exit $failed
