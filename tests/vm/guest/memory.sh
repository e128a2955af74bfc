# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that build; memory.list names the files (tests/vm/rig.py).
# What a build executes again and again: read over 9p once, then from memory at the same path.
[ -d /run/etrace-memory ] || {
	mkdir /run/etrace-memory
	mount -t tmpfs none /run/etrace-memory || die "no tmpfs"
	while read -r file; do
		mkdir -p "/run/etrace-memory${file%/*}"
		cp -p "$file" "/run/etrace-memory$file"
		mount --bind "/run/etrace-memory$file" "$file" || die "$file stays where it is"
	done <"$WORK/memory.list"
}
