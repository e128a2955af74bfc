#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh: instructions of calls natively, traced, and beside a traced task; of reading a line. One
# line `NAME NUMBER` for each reading in out/bench. bench/kernel/instructions.py says what they mean.
set -u
. "$WORK/guest/session.sh"
mkdir -p out /run/bench
echo content >/run/target # in memory: an open over 9p asks the host
opens=5000 forks=100 getpids=50000
rounds=5 turns=15
cd /run/bench || die "no folder"
count() { # KIND
	case $1 in
	open_close) echo $opens ;;
	getpid) echo $getpids ;;
	esac
}

result() { # NAME NUMBER
	echo "$1 $2" >>"$WORK/out/bench"
}

idle_ticks() {
	sed -n 's/^cpu  *[0-9]* [0-9]* [0-9]* \([0-9]*\).*/\1/p' /proc/stat
}

# On a busy host the guest's clock runs ahead of it, and udev may still be loading drivers.
wait_for_quiet() {
	while :; do
		before=$(idle_ticks)
		sleep 5
		[ -e /run/udev/queue ] || [ $(($(idle_ticks) - before)) -lt 490 ] || return 0 # of 500
	done
}

natively() { # NAME KIND
	result "$1" "$(calls "$2" "$(count "$2")" $rounds)"
}

# All records fit the buffer: a lost record costs less than a written one.
traced_reading() { # NAME "OPTION..." KIND COUNT ROUNDS
	name=$1 options=$2
	shift 2
	# shellcheck disable=SC2086 # the options are words
	result "${name}_$1" "$(ectl run $options -- calls "$@" 3>counters)"
	grep -q '^lost_records 0$' counters || die "$1: records were lost"
}

# What a process costs depends on which slabs its memory comes from and goes back to: that changes by
# 1 % from boot to boot and in the course of one, more than tracing does. So natively and traced by
# turns, each as long as 16 timer ticks.
by_turns() { # KIND COUNT
	make_instance 32768
	turn=0
	while [ $turn -lt $turns ]; do
		result "native_$1" "$(calls "$@" 1)"
		traced_reading traced "" "$@" 1
		traced_reading usage --usage "$@" 1
		echo >"$INSTANCE/trace"
		turn=$((turn + 1))
	done
	remove_instance
}

traced() { # KIND
	make_instance 32768
	traced_reading traced "" "$1" "$(count "$1")" $rounds
	if [ "$1" = open_close ]; then
		reader "$(sed -n 's/^events //p' counters)"
	fi
	drain "$INSTANCE/trace_pipe" >/dev/null
	remove_instance
}

# What etrace_cat takes for the records that are there, less what it takes for none.
reader() { # EVENTS
	full=$(cost 20 etrace_cat --tracefs "$TRACEFS" -o lines) || die "etrace_cat failed"
	empty=$(cost 20 etrace_cat --tracefs "$TRACEFS" -o none) || die "etrace_cat failed"
	lines=$(wc -l <lines)
	[ "$lines" -gt "$1" ] || die "only $lines lines of $1 events"
	result etrace_cat_line $(((full - empty) / lines))
	rm lines none
}

# As many records once more, read as the text that the kernel makes of them.
pipe_reader() {
	make_instance 32768
	ectl run -- calls open_close $opens $rounds >/dev/null 3>counters || die "calls failed"
	took=$(cost 20 sh -c "exec drain $INSTANCE/trace_pipe >lines") || die "drain failed"
	result trace_pipe_line $((took / $(wc -l <lines)))
	rm lines
}

beside() { # NAME OPTION...
	name=$1
	shift
	sleep 10000 &
	ectl start $! "$@" >/dev/null || die "no session"
	natively "${name}_getpid" getpid
	natively "${name}_open_close" open_close
	ectl stop >/dev/null
	kill $!
}

# Rounds that are shorter than the pause of etrace-bpf, which reads on the same processor.
under_bpf() { # KIND COUNT ROUNDS
	result "bpf_$1" "$(etrace-bpf -o trace --stats stats -- calls "$@")"
	grep -q '"lost":0' stats || die "$1: records were lost"
	rm trace stats
}

beside_bpf() {
	etrace-bpf -o trace -- sleep 10000 &
	sleep 5
	for kind in open_close getpid; do
		result "beside_bpf_$kind" "$(calls $kind 200 100)"
	done
	kill $!
	wait $!
	rm trace
}

wait_for_quiet
for kind in open_close getpid; do
	natively native_$kind $kind
done
load_module
for kind in open_close getpid; do
	traced $kind
done
by_turns fork_exec_exit $forks
pipe_reader
beside untraced
beside isolated --isolate
remove_instance
unload_module
for kind in open_close getpid; do
	natively after_$kind $kind
done
under_bpf open_close 100 200
under_bpf fork_exec_exit 2 100
beside_bpf
