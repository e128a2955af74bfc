#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# phases.sh PHASE...: each word names a script of this folder, its arguments joined by colons. Runs
# them one after another, so that a test run pays for one boot; output and status of each are files.
set -u
mkdir -p out
for phase; do
	name=${phase%%:*}
	arguments=$(echo "${phase#"$name"}" | tr : ' ')
	label=$(echo "$phase" | tr -c 'a-zA-Z0-9_.\n' -)
	echo "etrace-phase $label" >/dev/kmsg
	start=$(cut -d' ' -f1 /proc/uptime)
	# shellcheck disable=SC2086 # the arguments are words
	busybox sh ./guest/"$name.sh" $arguments >"out/$label.log" 2>&1 </dev/null
	echo "$?" >"out/$label.status"
	echo "$label: status $(cat "out/$label.status"), $start to $(cut -d' ' -f1 /proc/uptime) s"
	dmesg >out/dmesg
done
