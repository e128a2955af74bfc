#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# events.sh pipe|collector: runs the programs that programs.list names (`MODE/NAME OPTION...`) under
# the module, those with the same options in one session. Leaves in out/HOW what each printed and its
# status, and SESSION.trace and SESSION.counters; pipe reads trace_pipe after the session, collector
# lets etrace_cat read while it runs.
set -u
. "$WORK/guest/session.sh"
how=$1 out=$WORK/out/$1
# a file system of the guest's own: 9p has no O_TMPFILE, no open of deleted files, and is slow
folders=/run/etrace-events
mkdir -p "$out" $folders
mount -t tmpfs none $folders || die "no tmpfs"
cp -r programs $folders || die "no room"
mkdir $folders/out

run_programs() { # SESSION OPTION...
	session=$1
	shift
	ectl run "$@" -- busybox sh ./guest/programs.sh \
		"$out/$session.list" $folders \
		2>"$out/$session.stderr" 3>"$out/$session.counters"
}

traced_by_pipe() {
	run_programs "$@"
	drain "$INSTANCE/trace_pipe" >"$out/$1.trace"
}

traced_by_collector() {
	begin_collector "$out/$1.trace" --cwd /
	run_programs "$@"
	end_collector
}

load_module
make_instance 8192
cut -s -d' ' -f2- programs.list | sort -u | while read -r options; do
	session=session$(echo "$options" | tr ' ' -)
	awk -v options="$options" '{ program = $1; $1 = ""; sub(/^ /, "") } $0 == options { print program }' \
		programs.list >"$out/$session.list"
	# shellcheck disable=SC2086 # the options are words
	traced_by_"$how" "$session" $options
done || exit 1
cp $folders/out/* "$out" || die "no results"
remove_instance
unload_module
umount $folders
