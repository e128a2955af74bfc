#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the module counts because it has no event for it, and who may not start a session. Leaves
# out/around.expected and .counters, and in out/permissions.log one line `WHAT STATUS` each.
set -u
. "$WORK/guest/session.sh"
nobody() { # COMMAND...
	/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

attempt() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >>"$WORK/out/permissions.said" 2>&1
	echo "$what $?" >>"$WORK/out/permissions.log"
}

load_module
make_instance 1024
cd /run || die "no /run"
ectl run -- around >"$WORK/out/around.expected" 3>"$WORK/out/around.counters" || die "around failed"
# in a place that nobody can reach
cp "$BIN/ectl" /run/ectl
sleep 1000 &
attempt status_of_root /run/ectl status
attempt status_of_nobody nobody /run/ectl status
attempt start_of_nobody nobody /run/ectl start $!
attempt start_in_user_namespace nobody /usr/bin/unshare --user --map-root-user --net /run/ectl start $!
attempt start_of_no_process /run/ectl start 4194303
attempt start_of_root /run/ectl start $!
attempt second_start /run/ectl start $$
attempt stop_of_nobody nobody /run/ectl stop
attempt rmmod_during_a_session rmmod etrace
attempt stop_of_root /run/ectl stop
kill $!
cd "$WORK" || die "no work folder"
remove_instance
unload_module
