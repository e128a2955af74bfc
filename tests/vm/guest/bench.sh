#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh: instructions of calls natively, traced, and beside a traced task; of reading a line. One
# line `NAME NUMBER` for each in out/bench. bench/kernel.py says what they mean.
set -u
. "$WORK/guest/session.sh"
mkdir -p out /run/bench
echo content >/run/target # in memory: an open over 9p asks the host
opens=5000 forks=100 getpids=50000
cd /run/bench || die "no folder"
count() { # KIND
	case $1 in
	open_close) echo $opens ;;
	fork_exec_exit) echo $forks ;;
	getpid) echo $getpids ;;
	esac
}

result() { # NAME NUMBER
	echo "$1 $2" >>"$WORK/out/bench"
}

natively() { # NAME KIND
	result "$1" "$(calls "$2" "$(count "$2")")"
}

# All records fit the buffer: a lost record costs less than a written one.
traced() { # KIND
	make_instance 32768
	result "traced_$1" "$(ectl run -- calls "$1" "$(count "$1")" 3>counters)"
	grep -q '^lost_records 0$' counters || die "$1: records were lost"
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
	ectl run -- calls open_close $opens >/dev/null 3>counters || die "calls failed"
	took=$(cost 20 sh -c "exec drain $INSTANCE/trace_pipe >lines") || die "drain failed"
	result trace_pipe_line $((took / $(wc -l <lines)))
	rm lines
}

beside() { # NAME OPTION...
	name=$1
	shift
	sleep 10000 &
	ectl start $! "$@" >/dev/null || die "no session"
	natively "$name" getpid
	natively "${name}_open_close" open_close
	ectl stop >/dev/null
	kill $!
}

for kind in open_close fork_exec_exit getpid; do
	natively native_$kind $kind
done
load_module
for kind in open_close fork_exec_exit getpid; do
	traced $kind
done
pipe_reader
beside untraced
beside untraced_isolated --isolate
remove_instance
unload_module
for kind in open_close fork_exec_exit getpid; do
	natively after_$kind $kind
done
