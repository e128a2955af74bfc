#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# profile.sh: each kind of call natively and traced, for a plugin of QEMU that counts instructions from
# mark to mark. out/profiles has a line `NAME COUNT` for each pair of marks, in their order.
set -u
. "$WORK/guest/session.sh"
mkdir -p out /run/bench
echo content >/run/target
cd /run/bench || die "no folder"

profile() { # NAME KIND COUNT: natively, or under $tracer
	name=$1
	shift
	"${tracer:-env}" ${tracer:+run --} calls "$@" 1 >/dev/null 3>counters || die "$name failed"
	echo "$name $2" >>"$WORK/out/profiles"
}

kinds() { # PREFIX
	profile "$1_open_close" open_close 2000
	profile "$1_fork_exec_exit" fork_exec_exit 200
	profile "$1_getpid" getpid 20000
}

while [ -e /run/udev/queue ]; do sleep 1; done
sleep 5
load_module
make_instance 32768
tracer=
kinds native
tracer=ectl
kinds traced
tracer=
sleep 10000 &
ectl start $! >/dev/null || die "no session"
profile untraced_getpid getpid 20000
profile untraced_open_close open_close 2000
ectl stop >/dev/null
kill $!
cat /proc/kallsyms >"$WORK/out/kallsyms"
remove_instance
unload_module
