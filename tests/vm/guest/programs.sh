#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# programs.sh LIST FOLDERS: runs each program of LIST in a folder of its own, with only the descriptors 0,
# 1 and 2: close_range() and execve() would show what they close. Results are in FOLDERS/out.
while read -r program; do
	name=$(echo "$program" | tr / -)
	echo "etrace-program $program" >/dev/kmsg
	mkdir "$2/$name"
	cd "$2/$name" || exit
	"$2/programs/$program" >"$2/out/$name.expected" 2>"$2/out/$name.stderr" </dev/null
	echo "exit $?" >"$2/out/$name.status"
	cd "$WORK" || exit
	rm -rf "${2:?}/$name"
done <"$1"
