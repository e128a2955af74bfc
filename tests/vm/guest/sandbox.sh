#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sandbox.sh: the system calls of tests/sandbox/attempts.c in etrace-sandbox, and the ways of ways.py, on this
# kernel. Leaves in WORK/sandbox: WHO.said and WHO.report of the calls, `ways`.
set -u
OUT=$WORK/sandbox
. ./guest/python.sh
NOBODY=65534
export LD_LIBRARY_PATH= XDG_STATE_HOME=/run/state

# calls WHO OPTION...: in a folder of that user, beside a process of that user.
calls() {
	who=$1
	shift
	place=/run/sandbox-$who
	mkdir -p "$place/folder"
	for name in file gone renamed left right; do echo content >"$place/$name"; done
	run=
	[ "${who#user}" = "$who" ] || { chown -R $NOBODY:$NOBODY "$place"; run="/usr/bin/setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups"; }
	$run sleep 1000 &
	other=$!
	sleep 1
	ls -lnR --full-time "$place" >"$OUT/$who.before"
	printf 'PATH=/usr/bin:/bin\0' >/run/environment
	: >/run/report
	chmod 666 /run/report
	$run /run/bin/etrace-sandbox --program 3 --report 4 --environment 5 "$@" -- attempts "$place" $other \
		3</run/bin/attempts 4<>/run/report 5</run/environment >"$OUT/$who.said" 2>&1
	cp /run/report "$OUT/$who.report"
	ls -lnR --full-time "$place" >"$OUT/$who.after"
	kill $other
}

calls root --user $NOBODY:$NOBODY --reads-all
calls root-plain --user $NOBODY:$NOBODY --reads-all --no-namespaces
calls root-executes --user $NOBODY:$NOBODY --reads-all --executes
calls user
calls user-plain --no-namespaces
calls user-executes --executes
calls user-plain-executes --executes --no-namespaces

export LD_LIBRARY_PATH=$HOME_/python/lib
cp -r "$WORK/ways" /run/ways-source || exit 1
mkdir -p /run/ways
$PYTHON -s /run/ways-source/ways.py --few $HOME_ /run/ways >"$OUT/ways" 2>&1 || failed=1
exit $failed
