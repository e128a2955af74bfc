#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# detectors.sh: has each detector of the debug kernel report. Lock order first and the use after free
# last: their reports switch lockdep off.
for what in lock_order rcu_sleep atomic_sleep leak use_after_free; do
	echo "etrace-detector $what" >/dev/kmsg
	insmod "$WORK/complain.ko" what=$what && rmmod complain || exit
done
echo "etrace-detector end" >/dev/kmsg
. "$WORK/guest/leaks.sh"
