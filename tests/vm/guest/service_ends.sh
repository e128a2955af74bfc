#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by service.sh: sessions of etraced that are refused, stopped, killed, put to sleep or run
# out of disk.

# one session at a time; root sees it, and can end it by ending the service
mkfifo $HOME_/go
chmod 0644 $HOME_/go
exec 3<>$HOME_/go # a build that lasts until `go_on`, however slow the guest is
go_on() { echo >&3; }
$MEMBER $RUN -o $user/long -- sh -c "read -r _ <$HOME_/go" 2>"$OUT/long.err" &
long=$!
wait_until recording
step second 125 $MEMBER $RUN -o $user/second -- true
step fallback 0 $MEMBER etrace run -o $user/fallback -- true
step root-start 125 etrace start -o $HOME_/root
step root-stop 125 etrace stop
step status 0 $STRANGER etrace status
kill -TERM $daemon
wait $daemon
echo "stopped $? 0" >>"$OUT/steps"
go_on
step restarted 125 wait $long
clean restarted
keep long
serve

# the caller is killed
$MEMBER $RUN -o $user/killed -- sleep 60 2>/dev/null &
killed=$!
wait_until recording
kill -KILL $killed
wait_until over
clean caller
step again 0 $MEMBER $RUN -o $user/killed -- true
step partial 0 test -e $user/killed/.nfsdb.partial

# the collector is killed: another one continues the trace; only what the first had in hand is lost
$MEMBER $RUN -o $user/collector -- sh -c "read -r _ <$HOME_/go; : </etc/hostname" 2>"$OUT/collector.err" &
collector=$!
wait_until recording
first=$(pidof etrace_cat)
kill -KILL "$first"
succeeded() { [ -n "$(pidof etrace_cat)" ] && [ "$(pidof etrace_cat)" != "$first" ]; }
wait_until succeeded
go_on
wait $collector
status=$?
step collector-status 0 test $status = 0 -o $status = 125
clean collector
keep collector

# a processor goes and comes back, and the machine falls asleep and wakes, while a session records
$MEMBER $RUN -o $user/asleep -- sh -c "read -r _ <$HOME_/go; : </etc/hostname" 2>"$OUT/asleep.err" &
asleep=$!
wait_until recording
step hotplug 0 sh -c 'cd /sys/devices/system/cpu/cpu1 && echo 0 >online && echo 1 >online'
step suspend 0 sh -c 'echo freezer >/sys/power/pm_test && echo freeze >/sys/power/state'
go_on
step asleep 0 wait $asleep
clean asleep
keep asleep

# the disk is full
mkdir $user/full
mount -t tmpfs -o size=64k,uid=65534,gid=65534,mode=755 none $user/full
step full 125 $MEMBER $RUN -o $user/full -- sh -c 'i=0
	while [ $i -lt 400 ]; do : </etc/passwd; : </etc/hostname; i=$((i + 1)); done'
clean full

# etraced and all that it has started is killed, as systemd does it after a crash
$MEMBER $RUN -o $user/died -- sh -c "read -r _ <$HOME_/go" 2>"$OUT/died.err" &
died=$!
wait_until recording
worker=$(sed -n 's/.*"driver": {"pid": \([0-9]*\).*/\1/p' /run/etrace/session.json)
kill -KILL $daemon "$worker" "$(pidof etrace_cat)"
go_on
step died-status 125 wait $died
serve
wait_until over
clean died

# root's own sessions beside an idle service
step start 0 etrace start -o $HOME_/root
step stop 0 etrace stop
step run-root 0 $RUN -o $HOME_/root2 -- true
clean root
