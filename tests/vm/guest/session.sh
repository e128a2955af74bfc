# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: the module, its ftrace instance, and reading it.
INSTANCE=$TRACEFS/instances/etrace

die() {
	echo "$0: $*" >&2
	exit 1
}

load_module() {
	[ -d /sys/module/etrace ] || insmod "$WORK/etrace.ko" "$@" || die "insmod failed"
}

unload_module() {
	[ ! -d /sys/module/etrace ] || rmmod etrace || die "rmmod failed"
}

# make_instance KILOBYTES: per CPU. Drops the oldest reader's view: new records are lost and counted.
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
