#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rights.sh: root traces what user 65534 does to names below directories that are closed to that user, by each
# backend; etraced does the same for that user, as a member of its group. Leaves WORK/rights/HOW.nfsdb.
set -u
OUT=$WORK/rights
. ./guest/python.sh
place=/run/etrace-rights
AS_USER="/usr/bin/setpriv --reuid=65534 --regid=65534 --groups=54321"
RUN="etrace run -q"

mkdir -p $place
mount -t tmpfs -o mode=755 none $place || exit 1
cp "$WORK/bin/names" $place
mkdir $place/user
chown 65534:65534 $place/user

# directory MODE OWNER: with a link in it, used so that the kernel knows it
directory() {
	mkdir -p "$place/$1/client-$1"
	ln -s "client-$1" "$place/$1/current"
	touch "$place/$1/client-$1/f"
	chmod "$1" "$place/$1"
	chown "$2" "$place/$1"
	cat "$place/$1/current/f"
}

cat >$place/all <<EOF
#!/bin/sh
for mode in 0700 0744 0705 0077 0711 0710; do
	mkdir \$mode && cd \$mode && $place/names $place/\$mode/current/f && cd .. || exit 1
done
EOF
chmod 755 $place/all

# try HOW COMMAND...: as the user, in a folder of the user
try() {
	how=$1
	shift
	mkdir "$place/user/$how"
	chown 65534:65534 "$place/user/$how"
	cd "$place/user/$how" || exit 1
	step "$how" 0 "$@" $place/all
	cp .nfsdb "$OUT/$how.nfsdb"
}

for mode in 0700 0744 0711; do directory $mode 0:0; done
for mode in 0705 0710; do directory $mode 0:54321; done
directory 0077 65534:0

for backend in ptrace bpf; do
	try $backend $RUN --backend $backend -- $AS_USER
done
insmod $HOME_/etrace.ko || exit 1
try kmod $RUN --backend kmod -- $AS_USER
rm -f /run/etrace/etraced.sock
etraced --listen --group "$(stat -c %G $place/user)" --idle 1000 2>"$OUT/etraced.err" &
daemon=$!
while ! test -S /run/etrace/etraced.sock; do sleep 0.1; done
try etraced /usr/bin/setpriv --reuid=65534 --regid=65534 --groups=54321 $RUN --backend kmod --
kill -TERM $daemon
wait $daemon
rm -f /run/etrace/etraced.sock
cd "$WORK" || exit 1
rmmod etrace || exit 1
umount $place
exit $failed
