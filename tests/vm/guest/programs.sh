#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# programs.sh LIST FOLDERS OUT: runs each program of LIST in a folder of its own. It has no descriptor
# but 0, 1 and 2: close_range() and execve() would show what they close.
while read -r program; do
	name=$(echo "$program" | tr / -)
	mkdir "$2/$name"
	cd "$2/$name" || exit
	"$2/programs/$program" >"$3/$name.expected" 2>"$3/$name.stderr" </dev/null
	echo "exit $?" >"$3/$name.status"
	cd "$WORK" || exit
	rm -rf "${2:?}/$name"
done <"$1"
