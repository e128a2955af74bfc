#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stuck.sh: sessions that end while a traced task is held on its way to user space, with an event yet
# to be printed (hold.ko). Leaves in out/stuck what each STOP counted.
set -u
. "$WORK/guest/session.sh"
out=$WORK/out/stuck
mkdir -p "$out"

session() { # NAME: begins one over this shell; ends at end_session
	name=$1
	ectl start $$ >/dev/null || die "no session $name"
}

end_session() {
	ectl stop >"$out/$name.counters" || die "session $name does not end"
}

load_module
make_instance 1024
session first
begin_hold
first=$held
end_session
# what is stuck since the first session ends during the second, which has one of its own
session second
begin_hold
second=$held
let_go "$first"
end_session
# and here nothing is stuck but what is of earlier sessions
session third
busybox true
end_session
let_go "$second"
remove_instance
unload_module
rmmod hold
