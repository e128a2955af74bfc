#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: README's way through the kernel module, by the real commands over pyroute2, and what
# goes wrong on it.
# cli_session.sh [short]: README's way alone, or all of it.
# Leaves in WORK/cli: the traces, their databases, what the commands said, and `steps` (name, status).
set -u
extent=${1:-all}
OUT=$WORK/cli
. ./guest/python.sh

# unchanged NAME: nothing of a session is left.
unchanged() {
	left=$(ls -A /run/etrace | grep -v '^lock$')
	[ ! -d /sys/kernel/tracing/instances/etrace ] || left="$left instance"
	[ ! -d /sys/module/etrace ] || left="$left module"
	echo "$1-unchanged $([ -z "$left" ] && echo 0 || echo 1) 0 $left" >>"$OUT/steps"
	[ -z "$left" ] || { echo "FAILED $1: left: $left"; failed=1; }
}

start="etrace start --module $HOME_/etrace.ko --buffer-size 2048"
project=$HOME_/project
mkdir $project
printf 'all: hello\nhello: hello.o\n\tgcc -o $@ $<\n%%.o: %%.c\n\tgcc -c -o $@ $<\n' >$project/Makefile
printf '#include <stddef.h>\nint main(void) { return (int)offsetof(struct { int a; }, a); }\n' \
	>$project/hello.c
cd $project || exit 1

step doctor 0 etrace doctor
step status-before 1 etrace status

# what README says, in the directory of the project
step start 0 $start
step status 0 etrace status
if [ "$extent" = all ]; then
	step status-json 0 etrace status --json
	step second 125 $start -o /run/other
fi
make >"$OUT/make.out" 2>&1 || { echo "FAILED make"; failed=1; }
step stop 0 etrace stop
step parser 0 etrace_parser .nfsdb .nfsdb.json
unchanged stop
cp .nfsdb .nfsdb.stats .nfsdb.json "$OUT/"
[ "$extent" = all ] || exit $failed

# the same build as one command
make -s clean 2>/dev/null || rm -f hello hello.o
insmod $HOME_/etrace.ko
step run 0 etrace run --backend kmod -o "$HOME_/run" -- make
step run-status 7 etrace run --backend kmod -o "$HOME_/run7" -- sh -c 'exit 7'
rmmod etrace
unchanged run
cp "$HOME_/run/.nfsdb" "$OUT/run.nfsdb"
cp "$HOME_/run/.nfsdb.stats" "$OUT/run.nfsdb.stats"

# a collector that is killed: its trace is kept
step start-killed 0 $start -o "$HOME_/killed"
/bin/true
kill -KILL "$(pidof etrace_cat)"
step status-killed 1 etrace status
step stop-killed 2 etrace stop
unchanged killed
step parser-killed 2 etrace_parser "$HOME_/killed/.nfsdb" "$HOME_/killed/.nfsdb.json"

# buffers that overflow: counted
step start-loss 0 $start -o "$HOME_/loss" --buffer-size 64
kill -STOP "$(pidof etrace_cat)"
i=0
while [ $i -lt 300 ]; do
	/bin/true
	i=$((i + 1))
done
kill -CONT "$(pidof etrace_cat)"
step stop-loss 2 etrace stop
step parser-loss 2 etrace_parser "$HOME_/loss/.nfsdb" "$HOME_/loss/.nfsdb.json"
unchanged loss
cp "$HOME_/loss/.nfsdb.stats" "$OUT/loss.nfsdb.stats"

# a control group and the options that leave something out
group=/sys/fs/cgroup/etrace-cli
mkdir $group
echo content >inside
echo content >outside
step start-group 0 $start -o "$HOME_/group" --cgroup $group --isolate --open-once
step status-group 0 etrace status
cat outside
sh -c "echo \$\$ >$group/cgroup.procs; exec cat inside inside inside"
step stop-group 0 etrace stop
rmdir $group
unchanged group
cp "$HOME_/group/.nfsdb" "$OUT/group.nfsdb"
cp "$HOME_/group/.nfsdb.stats" "$OUT/group.nfsdb.stats"

# through sudo, as README says, from the shell of a user: the files are the user's
mkdir $HOME_/user
chown 65534:65534 $HOME_/user
cat >$HOME_/sudo-etrace <<EOF
#!/bin/sh
export PYTHONHOME=$PYTHONHOME PYTHONDONTWRITEBYTECODE=1
exec $HOME_/etrace "\$@"
EOF
chmod 0755 $HOME_/sudo-etrace
mkdir -p /etc/sudoers.d
echo "nobody ALL=(root) NOPASSWD: $HOME_/sudo-etrace" >/etc/sudoers.d/etrace
chmod 0440 /etc/sudoers.d/etrace
cat >$HOME_/as-user <<EOF
cd $HOME_/user || exit
sudo -n $HOME_/sudo-etrace start --module $HOME_/etrace.ko --buffer-size 2048 --zstd || exit
cat $HOME_/project/hello.c >copy
sudo -n $HOME_/sudo-etrace stop
EOF
step user 0 /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups /bin/sh $HOME_/as-user
ls -lan $HOME_/user >"$OUT/user.ls"
cp $HOME_/user/.nfsdb.zst "$OUT/user.nfsdb.zst"
for file in .nfsdb.zst .nfsdb.stats; do
	step owner$file 0 test "$(stat -c %u:%g $HOME_/user/$file)" = 65534:65534
done
unchanged user

cat "$OUT/steps"
[ $failed = 0 ] && echo "cli session: passed"
exit $failed
