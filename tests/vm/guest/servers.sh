#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that serve a file system to themselves (servers.c), natively and traced. Leaves in out/servers, for
# each KIND of them, KIND.status `native N`, `traced N` and the seconds of STOP, KIND.said, KIND.counters, KIND.trace.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/servers
mkdir -p "$out"
modprobe -a fuse autofs4

# attempt HOW KIND COMMAND...: in a folder of its own, with its own mounts
attempt() {
	how=$1
	kind=$2
	shift 2
	mkdir -p "/run/servers/$how-$kind/served"
	cd "/run/servers/$how-$kind" || die "no folder"
	/usr/bin/unshare -m "$@" servers "$kind" "$PWD/served" >>"$out/$kind.said" 2>&1
	echo "$how $?" >>"$out/$kind.status"
	cd /
}

load_module
make_instance 1024
for kind in fuse exec autofs pages away; do
	attempt native $kind
	attempt traced $kind ectl run --mounts -- 3>"$out/$kind.counters"
	drain "$INSTANCE/trace_pipe" >"$out/$kind.trace"
done
remove_instance
unload_module
