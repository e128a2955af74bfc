#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kselftest.sh: the selftest as the kernel's own runner runs it. Leaves what it said in
# out/kselftest.tap. From memory: programs that are executed over 9p take long.
set -u
. "$WORK/guest/session.sh"
load_module
mkdir /run/kselftest && mount -t tmpfs none /run/kselftest || die "no tmpfs"
cp -r kselftest/. /run/kselftest || die "no room"
cd /run/kselftest || die "no folder"
./run_kselftest.sh -c etrace >"$WORK/out/kselftest.tap" 2>&1
status=$?
cd "$WORK" || exit
umount /run/kselftest
unload_module
exit $status
