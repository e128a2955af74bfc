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
cd "$WORK" || exit
cp -r bin $BIN || exit
$BIN/busybox sh "./guest/$script" "$@"
status=$?
sync
echo $status >ended
