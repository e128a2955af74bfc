#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage.sh: programs that use what is known are traced with --usage, and once without. Leaves in out/usage
# what each program said, `trace` and `counters`, and those of the session `without`.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/usage
mkdir -p "$out" /run/etrace-usage
cd /run/etrace-usage || die "no folder"

load_module
make_instance 4096
ectl run --usage -- sh -c '
	for mode in work outlived crowd thread-executes killed parent both brief-threads; do
		/run/bin/spend $mode >$mode.said
	done
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		/run/bin/spend brief
	done' 3>"$out/counters"
drain "$INSTANCE/trace_pipe" >"$out/trace"
ectl run -- /run/bin/spend work 3>"$out/without.counters" >/dev/null
drain "$INSTANCE/trace_pipe" >"$out/without.trace"
cp ./*.said "$out" || die "nothing was said"
remove_instance
unload_module
