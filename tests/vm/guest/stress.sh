#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stress.sh SCALE LOOPS: storms under sessions, SCALE times as long as the shortest; LOOPS rounds
# of start/stop and of insmod/rmmod under load. Leaves in out/stress for each part what the module counted
# (NAME.counters), what the ring buffer counted (NAME.ring) and what was read (NAME.trace).
# tests/vm/test_stress.py says what must hold.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/stress scale=$1 loops=$2
folder=/run/etrace-stress
mkdir -p "$out" $folder
mount -t tmpfs none $folder || die "no tmpfs"
cd $folder || die "no folder"

ring_counts() { # sums of per_cpu/cpu*/stats: entries, overrun, dropped_events, read_events
	cat "$INSTANCE"/per_cpu/cpu*/stats | awk -F': ' '
		{ gsub(/ /, "_", $1); sum[$1] += $2 }
		END { for (name in sum) print name, sum[name] }'
}

free_kib() { # what can be had, and what is in the lists of free pages of each processor
	sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo
	awk '$1 == "count:" { pages += $2 } END { print pages * 4 }' /proc/zoneinfo
}

memory() { # NAME: the best of ten seconds, for the kernel frees a buffer of an instance when it likes
	most=0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sync
		echo 3 >/proc/sys/vm/drop_caches
		sleep 1
		now=$(free_kib | awk '{ sum += $1 } END { print sum }')
		[ "$now" -gt "$most" ] || continue
		most=$now
		(cat /proc/meminfo /proc/slabinfo && echo "Free: $now kB") >"$out/$1.memory"
		cp /proc/zoneinfo "$out/$1.zoneinfo"
	done
}

begin() { # KILOBYTES: an empty instance, its counters at 0
	remove_instance
	make_instance "$1"
}

follow() { # NAME
	drain "$INSTANCE/trace_pipe" --follow >"$out/$1.trace" &
	reader=$!
}

finish() { # NAME
	if [ "$reader" ]; then
		kill -TERM "$reader"
		wait "$reader" || die "the reader failed"
		reader=
	fi
	drain "$INSTANCE/trace_pipe" >>"$out/$1.trace"
	ring_counts >"$out/$1.ring"
}

traced() { # NAME COMMAND...
	name=$1
	shift
	ectl run --drain 60 -- "$@" >/dev/null 2>"$out/$name.stderr" 3>"$out/$name.counters"
}

load() { # a load that goes on until end_load; its pid in $load
	setsid stress_tasks "$@" &
	load=$!
}

end_load() { # setsid(1) forks only if it must: the load leads its own process group
	kill -KILL "-$load"
	wait "$load" 2>/dev/null
}

storms() {
	begin 8192
	follow storms
	traced storms stress_tasks fork "$((4 * scale))" exec "$((20 * scale))" vfork "$((10 * scale))" \
		kill "$((20 * scale))" thread "$((5 * scale))" thread_exec "$((10 * scale))" \
		deep "$scale" orphan "$((10 * scale))" shared_files "$((10 * scale))"
	finish storms
}

memories() {
	begin 65536
	follow memories
	mkdir -p memories
	cd memories || die "no folder"
	traced memories /usr/bin/unshare -m stress_memory huge_arguments "$((2 * scale))" many_arguments "$scale" \
		long_paths "$((2 * scale))" wild_pointers "$((5 * scale))" races "$((2 * scale))"
	cd $folder || die "no folder"
	finish memories
}

# Nobody reads; the buffer is small: what does not fit is counted, and no task waits.
stalled() {
	begin 16
	traced stalled stress_tasks exec "$((100 * scale))" fork "$((10 * scale))"
	finish stalled
}

# The reader dies in the middle; another one takes over.
killed_reader() {
	begin 512
	follow killed_reader
	(
		until [ "$(wc -c <"$out/killed_reader.trace")" -gt 8192 ]; do sleep 0.02; done
		kill -KILL "$reader"
	) &
	killer=$!
	traced killed_reader stress_tasks exec "$((100 * scale))" fork "$((10 * scale))"
	wait "$killer"
	wait "$reader"
	reader=
	finish killed_reader
}

hotplug() {
	begin 8192
	follow hotplug
	(
		while echo 0 >/sys/devices/system/cpu/cpu1/online; do
			echo "offline 1"
			echo 1 >/sys/devices/system/cpu/cpu1/online
		done
	) >"$out/hotplug.rounds" &
	plugger=$!
	traced hotplug stress_tasks exec "$((50 * scale))" kill "$((20 * scale))" fork "$((10 * scale))"
	kill "$plugger"
	wait "$plugger"
	echo 1 >/sys/devices/system/cpu/cpu1/online
	finish hotplug
}

# Sessions begin and end at any moment of the tasks' lives.
start_stop() {
	begin 1024
	load kill 0
	round=0
	while [ $round -lt "$loops" ]; do
		ectl start "$load" --descendants >/dev/null || die "start $round"
		[ $((round % 4)) = 0 ] || sleep 0.05
		ectl stop >"$out/start_stop.counters" || die "stop $round"
		drain "$INSTANCE/trace_pipe" >"$out/start_stop.trace"
		round=$((round + 1))
	done
	end_load
	echo "$round" >"$out/start_stop.rounds"
}

# The module goes while tasks are traced, and comes back; a running session keeps it.
reload() {
	begin 256
	load kill 0
	round=0
	while [ $round -lt "$loops" ]; do
		ectl start "$load" --descendants >/dev/null || die "start $round"
		! rmmod etrace 2>/dev/null || die "rmmod during a session"
		ectl stop >/dev/null || die "stop $round"
		rmmod etrace || die "rmmod $round"
		insmod "$WORK/etrace.ko" || die "insmod $round"
		round=$((round + 1))
	done
	end_load
	echo "$round" >"$out/reload.rounds"
}

# A session ends when the process that started it is killed.
killed_owner() {
	begin 1024
	load kill 0
	ectl start "$load" --descendants >/dev/null || die "start"
	kill -KILL "$(ectl status | sed -n 's/^owner //p')" || die "the session has no owner"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		ectl status >"$out/killed_owner.counters"
		! grep -q '^state stopped' "$out/killed_owner.counters" || break
		sleep 0.5
	done
	end_load
}

# Who still works in the folder or has a file of it open, with the state of each.
users() {
	for process in /proc/[0-9]*; do
		[ "$process" != /proc/$$ ] || continue
		case "$(ls -l "$process/cwd" "$process/fd" 2>/dev/null)" in
		*" -> $folder"*) echo "$process $(cut -d' ' -f2,3 "$process/stat") $(tr '\0' ' ' <"$process/cmdline")" ;;
		esac
	done
}

# What was killed takes a moment to go; what stays is a finding.
leave_folder() {
	cd /
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		users >"$out/left"
		[ -s "$out/left" ] || break
		sleep 1
	done
	umount $folder || umount -l $folder
}

reader=
load_module
storms
remove_instance
unload_module
rm -rf ${folder:?}/*
memory before

load_module
for part in storms memories stalled killed_reader hotplug start_stop reload killed_owner; do
	echo "$part $(cut -d' ' -f1 /proc/uptime)"
	echo "etrace-stress $part" >/dev/kmsg
	$part
done
remove_instance
unload_module
rm -rf ${folder:?}/*
memory after
leave_folder
