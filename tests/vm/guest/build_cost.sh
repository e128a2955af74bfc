#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_cost.sh TURNS: a real build, alternately natively and traced, `NAME NANOSECONDS` in out/build. Its
# tools, headers and sources are in memory (root.tar): over 9p the guest would wait for the host. The
# collector works meanwhile on the same processor.
set -u
. "$WORK/guest/session.sh"
root=/run/build-root
mkdir -p out $root
mount -t tmpfs -o size=75% none $root || die "no tmpfs"
tar -C $root -xf "$WORK/root.tar" || die "no root"
cp "$BIN/wall" $root || die "no wall" # over 9p the clock jumps while the guest waits
mknod $root/dev/null c 1 3
while [ -e /run/udev/queue ]; do sleep 1; done
load_module

build() { # NAME [TRACER...]
	name=$1
	shift
	rm -rf $root/build
	cp -r $root/sources $root/build
	ns=$("$@" chroot $root /wall /usr/bin/make -C /build linux 3>counters 2>make.log) ||
		die "$name: the build failed: $(tail -n 5 make.log)"
	echo "$name $ns" >>"$WORK/out/build"
}

cd /run || die "no folder"
export LC_ALL=C HOME=/nonexistent PATH="$PATH"
turn=0
while [ $turn -lt "$1" ]; do
	build native env
	make_instance 8192
	begin_collector /run/lines
	build traced ectl run --
	end_collector
	grep -q '^lost_records 0$' counters || die "records were lost"
	echo "lines $(wc -l </run/lines)" >>"$WORK/out/build"
	remove_instance
	turn=$((turn + 1))
done
unload_module
