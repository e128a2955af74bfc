#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh NAME: the project in sources/NAME is built three times in the same folder: under the module
# and strace at once (out/NAME.nfsdb, out/NAME.strace/), by the ptrace backend
# (out/NAME.ptrace.nfsdb), and under the module alone in out/NAME.alone.nfsdb.
set -u
. "$WORK/guest/session.sh"
name=$1
folder=/run/etrace-build
out=$WORK/out
export LC_ALL=C HOME=/nonexistent PATH=/usr/local/bin:/usr/bin:/bin

fresh() { # the same paths and, as far as a build can, the same contents
	rm -rf "${folder:?}/work"
	cp -r "$WORK/sources/$name" $folder/work
	cd $folder/work || die "no work folder"
}

. "$WORK/guest/memory.sh"
mkdir -p $folder "$out/$name.strace"
mount -t tmpfs none $folder || die "no tmpfs"
load_module
make_instance 8192

fresh
begin_collector "$out/$name.nfsdb" --cwd $folder/work
# shellcheck disable=SC2046 # one option a line
"$BIN/ectl" run -- strace $(cat "$WORK/strace.options") -o "$out/$name.strace/log" make \
	>"$out/$name.module.stdout" 3>"$out/$name.counters" || die "the build under strace failed"
end_collector

fresh
begin_collector "$out/$name.alone.nfsdb" --cwd $folder/work
"$BIN/ectl" run -- make >"$out/$name.alone.stdout" 3>"$out/$name.alone.counters" ||
	die "the build under the module failed"
end_collector
remove_instance
unload_module

fresh
"$(cat "$WORK/ptrace.path")" -o "$out/$name.ptrace.nfsdb" --no-stderr -- make >"$out/$name.ptrace.stdout" ||
	die "the build under etrace-ptrace failed"
cd "$WORK" || die "no work folder"
umount $folder
