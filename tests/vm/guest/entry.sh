#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First thing that runs in the guest: entry.sh WORK SCRIPT [ARGUMENT...]. Prepares what every script
# needs, runs guest/SCRIPT in WORK and leaves its status in WORK/ended. Programs and shell come from
# memory: executed over 9p each page is a message to the host.
set -u
export WORK=$1
script=$2
shift 2
export TRACEFS=/sys/kernel/tracing
export BIN=/run/bin
export PATH="$BIN:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
grep -q "^[^ ]* $TRACEFS " /proc/mounts || mount -t tracefs none $TRACEFS
grep -q "^[^ ]* /sys/kernel/debug " /proc/mounts || mount -t debugfs none /sys/kernel/debug
grep -q "^[^ ]* /sys/fs/cgroup " /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
# its thread has low priority and reads under RCU: starved for a minute it looks like a stall
[ ! -e /sys/kernel/debug/kmemleak ] || echo scan=off >/sys/kernel/debug/kmemleak
cd "$WORK" || exit
cp -r bin $BIN || exit
# a script that hangs: where each task is goes to the console before the host ends the guest. The host
# decides: the guest's own clock goes on while the emulator waits for a processor. Nothing is executed
# meanwhile that a test or a measurement could see.
mkfifo /run/never
# shellcheck disable=SC2016 # the inner shell expands it
$BIN/busybox sh -c 'until [ -e hangs ]; do read -r -t 10 _ <>/run/never; done
	dmesg -n 8 && echo t >/proc/sysrq-trigger' &
# virtme-ng leaves descriptors open, pipes to the host among them
$BIN/busybox sh "./guest/$script" "$@" 3>&- 4>&- 5>&- 6>&-
status=$?
sync
echo $status >ended
