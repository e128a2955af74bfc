# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: the module, its ftrace instance, and reading it.
INSTANCE=$TRACEFS/instances/etrace
HOLD=/sys/module/hold

die() {
	echo "$0: $*" >&2
	exit 1
}

is_built_in() { # into a kernel of tree_kernel.py
	[ ! -e "$WORK/etrace.ko" ]
}

load_module() {
	is_built_in || [ -d /sys/module/etrace ] || insmod "$WORK/etrace.ko" "$@" || die "insmod failed"
}

unload_module() {
	is_built_in || [ ! -d /sys/module/etrace ] || rmmod etrace || die "rmmod failed"
}

# make_instance KILOBYTES: per CPU. What does not fit is lost and counted, nothing is overwritten.
make_instance() {
	[ -d "$INSTANCE" ] || mkdir "$INSTANCE" || die "no instance"
	echo 0 >"$INSTANCE/options/overwrite"
	echo 0 >"$INSTANCE/options/context-info"
	echo "$1" >"$INSTANCE/buffer_size_kb"
	[ "$(cat "$INSTANCE/options/overwrite" "$INSTANCE/options/context-info" | tr -d '\n')" = 00 ] ||
		die "the instance does not take its options"
}

remove_instance() {
	[ ! -d "$INSTANCE" ] || rmdir "$INSTANCE" || die "the instance is still held"
}

# begin_collector FILE OPTION...: etrace_cat reads the instance into FILE until end_collector.
begin_collector() {
	collected=$1
	shift
	mkfifo /run/etrace-ready
	"$BIN/etrace_cat" --tracefs "$TRACEFS" --instance etrace --ready-fd 4 -o "$collected" "$@" \
		4>/run/etrace-ready &
	collector=$!
	read -r _ </run/etrace-ready || die "etrace_cat is not ready"
	rm /run/etrace-ready
}

end_collector() {
	kill -TERM $collector
	wait $collector || die "etrace_cat ended with $?"
}

# begin_hold: $held, a traced task, does not get to user space, and so ends no session whole.
begin_hold() {
	[ -d $HOLD ] || insmod "$WORK/hold.ko" || die "no hold.ko"
	n_held=$(cat $HOLD/parameters/n_held)
	mkfifo /run/etrace-held
	hold >/run/etrace-held &
	read -r held </run/etrace-held || die "nothing is held"
	rm /run/etrace-held
	until [ "$(cat $HOLD/parameters/n_held)" -gt "$n_held" ]; do sleep 0.01; done
}

let_go() { # TASK
	echo "$1" >$HOLD/parameters/release
	wait "$1" || die "the held task ended with $?"
}
