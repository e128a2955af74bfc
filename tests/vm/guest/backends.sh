#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# backends.sh NAME: the project in sources/NAME is built in the same folder by `etrace run` with each
# backend. Leaves WORK/backends/HOW.nfsdb and .stats.
set -u
. "$WORK/guest/session.sh"
OUT=$WORK/backends
. "$WORK/guest/python.sh"
. "$WORK/guest/memory.sh"
project=$1
folder=/run/etrace-build
export LC_ALL=C HOME=/nonexistent
export API_TOKEN=zKeptAside7kQ MIRROR=https://me:zKeptAside7kQ@example.org/ NUMBER=zOrdinary7kQ

# build HOW OPTION...: the same paths, and as far as a build can, the same contents
build() {
	how=$1
	shift
	rm -rf "${folder:?}/work" "$HOME_/traces"
	cp -r "$WORK/sources/$project" $folder/work
	mkdir "$HOME_/traces"
	cd $folder/work || die "no work folder"
	step "$how" 0 etrace run -q "$@" -o "$HOME_/traces" -- make
	cp "$HOME_/traces/.nfsdb" "$OUT/$how.nfsdb"
	cp "$HOME_/traces/.nfsdb.stats" "$OUT/$how.stats"
}

mkdir -p $folder
mount -t tmpfs none $folder || die "no tmpfs"
build ptrace --backend ptrace
build bpf --backend bpf
build preload --backend preload
build strace --backend strace
insmod $HOME_/etrace.ko || die "insmod failed"
build kmod --backend kmod
rmmod etrace || die "rmmod failed"
cd "$WORK" || die "no work folder"
umount $folder
exit $failed
