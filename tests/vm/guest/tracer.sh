#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tracer.sh BACKEND [NAME...]: runs the programs that programs.list names (`MODE/NAME OPTION...`), or the
# 64-bit ones of these names, under etrace-BACKEND, each in a folder of its own with only the descriptors
# 0, 1 and 2. Leaves in out/BACKEND what each printed, its status with the times before and after, and
# NAME.trace.
set -u
. "$WORK/guest/session.sh"
tracer=etrace-$1
out=$WORK/out/$1
shift
folders=/run/etrace-events
mkdir -p "$out" $folders
mount -t tmpfs none $folders || die "no tmpfs"
cp -r programs $folders || die "no room"
mkdir $folders/out

uptime_ns() { # in hundredths of a second
	sed 's/^\([0-9]*\)\.\([0-9]*\) .*/\1\20000000/' /proc/uptime
}

while read -r program options; do
	[ $# -eq 0 ] || case " $* " in *" ${program#64/} "*) ;; *) continue ;; esac
	name=$(echo "$program" | tr / -)
	echo "etrace-program $program" >/dev/kmsg
	mkdir "$folders/$name"
	cd "$folders/$name" || die "no folder"
	started=$(uptime_ns)
	# shellcheck disable=SC2086 # the options are words
	"$tracer" -o "$folders/out/$name.trace" $options -- "$folders/programs/$program" \
		>"$folders/out/$name.expected" 2>"$folders/out/$name.stderr" </dev/null
	printf 'exit %s\nstarted_ns %s\nended_ns %s\n' $? "$started" "$(uptime_ns)" >"$folders/out/$name.status"
	cd "$WORK" || die "no work folder"
	rm -rf "${folders:?}/$name"
done <programs.list
cp $folders/out/* "$out" || die "no results"
umount $folders
