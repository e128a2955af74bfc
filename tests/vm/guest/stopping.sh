#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stopping.sh: what others ask of the module, of generic netlink and of the kernel while a STOP waits
# for a task that is held (hold.ko). Leaves in out/stopping one line `WHAT STATUS` each in the .log
# of a part, what was said in its .said, and what each STOP answered.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/stopping
mkdir -p "$out"
cp "$WORK/family.ko" "$BIN/ectl" /run || die "no room"

attempt() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >>"$out/$part.said" 2>&1
	echo "$what $?" >>"$out/$part.log"
}

state() {
	/run/ectl status | sed -n 's/^state //p'
}

# A session with a held task, and a STOP of it: its pid in $stopper.
begin_stop() { # OPTION...
	ectl start $$ >/dev/null || die "no session"
	begin_hold
	ectl stop "$@" >"$out/$part.counters" 2>"$out/$part.stderr" &
	stopper=$!
	await_stop
}

# Until the module says that it stops the session, or has done so.
await_stop() {
	while [ "$(state)" = running ]; do :; done
}

# The machine may be too busy for the rest to be done in the two seconds: then once more.
others() {
	for _ in 1 2 3 4 5 6; do
		part=others
		rm -f "$out/$part".*
		begin_stop
		attempt load_a_family insmod /run/family.ko
		attempt ask_for_it ectl family etrace_test
		attempt start ectl start $$
		attempt rmmod rmmod etrace
		ectl stop >"$out/$part.second.counters" &
		second=$!
		state >"$out/$part.state"
		attempt stop wait $stopper
		attempt second_stop wait $second
		state >"$out/$part.state_afterwards"
		rmmod family || die "the family stays"
		let_go "$held"
		grep -q stopping "$out/$part.state" && break
	done
}

caller_gone() {
	begin_stop
	kill -KILL $stopper
	ectl stop >"$out/$part.counters"
	attempt stop_or_none test $? = 0 -o "$(state)" = stopped
	let_go "$held"
}

owner_gone() {
	begin_stop
	kill -KILL "$(ectl status | sed -n 's/^owner //p')"
	attempt stop wait $stopper
	state >"$out/$part.state_afterwards"
	let_go "$held"
}

# The socket that owns the session is closed: that begins to stop it, and a STOP joins.
owner_stops() {
	ectl start $$ >/dev/null || die "no session"
	begin_hold
	kill -KILL "$(ectl status | sed -n 's/^owner //p')"
	await_stop
	ectl stop >"$out/$part.counters" 2>"$out/$part.stderr"
	attempt stop_or_none test $? = 0 -o "$(state)" = stopped
	state >"$out/$part.state_afterwards"
	let_go "$held"
}

unacknowledged() {
	begin_stop --no-ack
	attempt stop wait $stopper
	let_go "$held"
}

# The module goes as soon as the answer is there.
unloaded() {
	begin_stop
	wait $stopper
	attempt rmmod_with_a_held_task rmmod etrace
	let_go "$held"
	ectl start $$ >/dev/null || die "no session"
	ectl stop >/dev/null
	attempt rmmod rmmod etrace
}

load_module
make_instance 1024
for part in others caller_gone owner_gone owner_stops unacknowledged unloaded; do
	echo "etrace-stopping $part" >/dev/kmsg
	$part
done
remove_instance
unload_module
rmmod hold
