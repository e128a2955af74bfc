#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cgroup.sh THREADS: a control group is traced: a process of THREADS threads more that is moved into it, one
# that is there before, and a shell that moves itself below it and starts a program. Leaves in out/cgroup
# `moved` (counters before and after the move), `counters` of the end and `trace`.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/cgroup
group=/sys/fs/cgroup/etrace-traced
mkdir -p "$out" $group/below /run/etrace-cgroup
cd /run/etrace-cgroup || die "no folder"
: >thread
: >outside
mkfifo go said

tasks() {
	ectl status | sed -n 's/^tasks //p'
}

load_module
make_instance 4096
sleep 1000 &
member=$!
echo $member >$group/cgroup.procs
crowd "$1" <go >said &
crowd=$!
exec 9>go
read -r word <said
[ "$word" = ready ] || die "crowd said $word"
ectl start --cgroup /etrace-traced >/dev/null || die "no session"
tasks >"$out/moved"
cat outside # not in the group
echo $crowd >$group/cgroup.procs
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(tasks)" -lt $(($1 + 2)) ] || break
	sleep 1
done
tasks >>"$out/moved"
echo >&9
wait $crowd || die "crowd failed"
sh -c "echo \$\$ >$group/below/cgroup.procs; /bin/busybox true; exec /bin/busybox cat thread"
kill $member
wait $member
ectl stop >"$out/counters" || die "no stop"
drain "$INSTANCE/trace_pipe" >"$out/trace"
remove_instance
unload_module
rmdir $group/below $group
