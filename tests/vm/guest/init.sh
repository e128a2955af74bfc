#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of a guest of another architecture (tests/vm/arm64.py): init.sh WORK SCRIPT [ARGUMENT...].
# Makes what virtme-ng makes elsewhere: file systems, the work folder of the host at its own path, and
# standard output, a file there. Errors go to the console.
/bin/busybox mount -t proc none /proc # where the shell finds its own commands
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/pts "$1"
ln -s /proc/self/fd /dev/fd
mount -t tmpfs none /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /run
mount -t tmpfs none /tmp
chmod 1777 /tmp /dev/shm
modprobe -a virtio_pci 9pnet_virtio 9p
ip link set lo up
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,access=any work "$1"
# its end is the machine's, whatever it left running
sh "$1/guest/entry.sh" "$@" >>"$1/stdout" </dev/null
sync
poweroff -f
