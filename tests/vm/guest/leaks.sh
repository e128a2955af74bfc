#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# leaks.sh: what kmemleak holds for lost, in out/kmemleak. Twice, for a block is reported only when it
# was unreferenced for some seconds.
scan=/sys/kernel/debug/kmemleak
echo scan >$scan || exit
sleep 6
echo scan >$scan || exit
cat $scan >"$WORK/out/kmemleak"
