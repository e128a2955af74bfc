#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# events.sh pipe|collector LIST OUT: runs each program that LIST names (`MODE/NAME OPTION...`) under
# the module; leaves in OUT what it printed, its trace and its counters. pipe reads trace_pipe
# after the session, collector lets etrace_cat read while it runs.
set -u
. "$WORK/guest/session.sh"
how=$1 list=$2 out=$3
# a file system of the guest's own: 9p has no O_TMPFILE and no open of deleted files
folders=/run/etrace-events
mkdir -p "$out" $folders
mount -t tmpfs none $folders || die "no tmpfs"

run_program() { # NAME PROGRAM OPTION...
	name=$1 program=$2
	shift 2
	mkdir -p "$folders/$name"
	cd "$folders/$name" || die "no folder"
	ectl run "$@" -- "$program" >"$out/$name.expected" 2>"$out/$name.stderr" 3>"$out/$name.counters"
	cd "$WORK" || die "no work folder"
}

traced_by_pipe() {
	run_program "$@"
	drain "$INSTANCE/trace_pipe" >"$out/$1.trace"
}

traced_by_collector() {
	fifo=$folders/ready
	mkfifo "$fifo"
	etrace_cat --tracefs $TRACEFS --instance etrace --ready-fd 4 -o "$out/$1.trace" \
		2>"$out/$1.collector" 4>"$fifo" &
	collector=$!
	read -r _ <"$fifo" || die "etrace_cat is not ready: $(cat "$out/$1.collector")"
	rm "$fifo"
	run_program "$@"
	kill -TERM $collector
	wait $collector
	echo "collector $?" >>"$out/$1.counters"
}

load_module
make_instance 4096
while read -r program options; do
	# shellcheck disable=SC2086 # the options are words
	traced_by_"$how" "$(echo "$program" | tr / -)" "$WORK/programs/$program" $options
done <"$list"
remove_instance
unload_module
umount $folders
