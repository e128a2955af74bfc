#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kprobes that are switched off as a whole, by each of the two switches, before START or during the session. Leaves
# in out/probes_off, for each case, what STATUS says after START (CASE.status) and what STOP does (CASE.stop).
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/probes_off
mkdir -p "$out"

switch_kprobes() {
	echo "$1" >/sys/kernel/debug/kprobes/enabled || die "kprobes cannot be switched"
}

switch_ftrace() {
	echo "$1" >/proc/sys/kernel/ftrace_enabled || die "ftrace cannot be switched"
}

# session CASE SWITCH BEFORE DURING
session() {
	$2 "$3"
	ectl start $sleeper >/dev/null || die "no session"
	ectl status >"$out/$1.status"
	$2 "$4"
	ectl stop >"$out/$1.stop" || die "no stop"
	$2 1
}

load_module
make_instance 1024
sleep 1000 &
sleeper=$!
session on switch_kprobes 1 1
session kprobes switch_kprobes 0 0
session kprobes_later switch_kprobes 1 0
session ftrace switch_ftrace 0 0
session ftrace_later switch_ftrace 1 0
session on_again switch_kprobes 1 1
kill $sleeper
remove_instance
unload_module
