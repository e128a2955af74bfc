#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# detectors.sh: has each detector of the debug kernel report. Lock order first and the use after free
# last: their reports switch lockdep off. Pauses, because the kernel reports one sleep a second.
deed() { # WHAT
	echo "etrace-detector $1" >/dev/kmsg
	insmod "$WORK/complain.ko" what="$1"
}

for what in lock_order rcu_sleep atomic_sleep use_after_free; do
	deed $what && rmmod complain || exit
	sleep 2
done
# loaded as long as kmemleak looks: so it can name the function that leaked
deed leak || exit
echo "etrace-detector end" >/dev/kmsg
. "$WORK/guest/leaks.sh"
rmmod complain
