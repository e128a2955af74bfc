#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# faults.sh: on a kernel with fault injection, allocations fail for the traced tasks, for the process
# that starts a session, and for insmod. Leaves in out/faults what the module counted and how often
# START and insmod failed. Afterwards everything must work as before.
set -u
. "$WORK/guest/session.sh"
# nothing of 9p: its client stays broken when its allocations fail
out=/run/etrace-faults
debug=/sys/kernel/debug
mkdir -p $out
cp "$WORK/etrace.ko" /run/etrace.ko
cd $out || die "no folder"

set_faults() { # PERCENT: of the allocations of tasks that say so in their make-it-fail
	for kind in failslab fail_page_alloc; do
		echo Y >$debug/$kind/task-filter
		echo "$1" >$debug/$kind/probability
		echo -1 >$debug/$kind/times
		echo 0 >$debug/$kind/verbose
		echo N >$debug/$kind/ignore-gfp-wait || die "no $kind: not the debug kernel?"
	done
	echo 0 >$debug/fail_page_alloc/min-order
}

failing() { # COMMAND...
	(echo 1 >/proc/self/make-it-fail && exec "$@") >>"$out/said" 2>&1
}

storm() { # PERCENT
	set_faults "$1"
	ectl run -- busybox sh -c 'echo 1 >/proc/self/make-it-fail; exec stress_tasks exec 60 fork 6 \
		vfork 20 kill 30 thread 10 thread_exec 10 orphan 10 shared_files 10' \
		>>"$out/said" 2>&1 3>"$out/storm$1.counters"
	drain "$INSTANCE/trace_pipe" >"$out/storm$1.trace"
}

starts() {
	failed=0
	sleep 10000 &
	for _ in $(seq 100); do
		if failing ectl start $! --descendants; then
			failing ectl stop || ectl stop >/dev/null || die "STOP failed without faults"
		else
			failed=$((failed + 1))
			! ectl status | grep -q '^state running' || ectl stop >/dev/null
		fi
	done
	kill $!
	echo "starts $failed" >>"$out/failed"
}

loads() {
	failed=0
	for _ in $(seq 60); do
		if failing insmod /run/etrace.ko; then
			rmmod etrace || die "rmmod failed"
		else
			failed=$((failed + 1))
		fi
	done
	echo "loads $failed" >>"$out/failed"
}

load_module
make_instance 8192
for percent in 1 3 10 30; do
	storm $percent
done
set_faults 10
starts
remove_instance
unload_module
set_faults 3
loads
set_faults 0

load_module
make_instance 8192
ectl run -- stress_tasks exec 20 >"$out/after.stdout" 3>"$out/after.counters" || die "does not recover"
drain "$INSTANCE/trace_pipe" >"$out/after.trace"
remove_instance
unload_module
cd "$WORK" && cp -r $out out/faults
