#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has the kernel warn, then dies with it: shows that the runner on the host notices both.
insmod "$WORK/complain.ko" what=warn
echo "the guest is about to crash"
echo c >/proc/sysrq-trigger
