# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that run the real commands over pyroute2. WORK holds etrace.ko and python.tar
# (tests/vm/python_tree.py): Python in memory, because reading a thousand small files over 9p takes
# minutes. The script has set OUT; it gets HOME_, the commands in PATH, step() and `failed`.
HOME_=/run/etrace-guest # only root can write it: a module is loaded from nowhere else
rm -rf "$OUT"
mkdir -p "$OUT" $HOME_
tar -xf "$WORK/python.tar" -C $HOME_ || exit 1
install -m 0644 "$WORK/etrace.ko" $HOME_/etrace.ko
export PYTHONHOME=$HOME_/python PYTHONDONTWRITEBYTECODE=1
export LD_LIBRARY_PATH=$HOME_/python/lib # its libpython, for users who may not read where it was built
PYTHON=$HOME_/python/bin/python3
for command in etrace etrace_parser etraced; do
	cat >$HOME_/$command <<EOF
#!$PYTHON -s
import sys
from etrace.cli.main import $command
sys.exit($command())
EOF
	chmod 0755 $HOME_/$command
done
export PATH=$HOME_:$PATH
failed=0

# step NAME EXPECTED COMMAND...: run it, keep what it said, note its status.
step() {
	name=$1 expected=$2
	shift 2
	began=$(cut -d' ' -f1 /proc/uptime)
	"$@" >"$OUT/$name.out" 2>"$OUT/$name.err"
	status=$?
	echo "$name $status $expected $began $(cut -d' ' -f1 /proc/uptime)" >>"$OUT/steps"
	if [ $status != "$expected" ]; then
		echo "FAILED $name: status $status instead of $expected"
		tail -n 20 "$OUT/$name.out" "$OUT/$name.err"
		failed=1
	fi
}
