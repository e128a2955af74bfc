# SPDX-License-Identifier: Apache-2.0
"""A program of the build that writes whatever it likes into the memory that all of them share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ETRACE = Path(sys.executable).parent / "etrace"
#: overwrites the head of the memory again and again until it is killed
SPOIL = """
import mmap, os, sys
variable = os.environ["ETRACE_PRELOAD"]
fd = os.open(variable.partition(":")[0], os.O_RDWR)
memory = mmap.mmap(fd, 1 << 17)
content = bytes([int(sys.argv[1])]) * (len(memory) - 32)
print("ready", flush=True)
while True:
    memory[32:] = content
"""
BUILD = """
{python} -c '{spoil}' {byte} >spoiling & spoiler=$!
until [ -s spoiling ]; do :; done
i=0
while [ $i -lt 10 ]; do
	ls -l / >out || exit 1
	env | grep -q '^LD_PRELOAD=[^:]*/libetrace-[^:]*$' || exit 2
	i=$((i + 1))
done
kill $spoiler
exit 7
"""


@pytest.mark.parametrize("byte", [1, 0x41])
def test_the_build_goes_on_in_spoiled_memory(tmp_path: Path, byte: int) -> None:
    script = BUILD.format(python=sys.executable, spoil=SPOIL, byte=byte)
    done = subprocess.run(
        [ETRACE, "run", "--backend", "preload", "--", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, (tmp_path / "out").stat().st_size > 0) == (7, True), done.stderr
    assert (tmp_path / ".nfsdb").read_bytes().startswith(b"INITCWD=")


def test_a_program_that_forbids_itself_all_calls_is_not_killed_at_its_end(tmp_path: Path) -> None:
    """Why the library does not ask the kernel what a process used: decision 47."""
    confined = tmp_path / "confined"
    source = Path(__file__).resolve().parents[1] / "data" / "confined.c"
    subprocess.run(["gcc", "-O1", "-o", confined, source], check=True)
    done = subprocess.run(
        [ETRACE, "run", "--backend", "preload", "--", confined],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = (tmp_path / ".nfsdb").read_bytes()
    assert trace.count(b"!Exit|") == 1
    assert b"!Usage|" not in trace
