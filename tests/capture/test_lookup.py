# SPDX-License-Identifier: Apache-2.0
"""The tracer waits for no file system: the process that serves it may be in a ptrace stop."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest
import trace_lines
from backends import PTRACE, capture, need_root, need_tool
from event_programs import compiled
from failing_calls import forbid


def names(trace: Path, *tags: str) -> list[bytes]:
    """Return the strings of these kinds in the order of the trace."""
    wanted = tuple(tag.encode() + b"|" for tag in tags)
    lines = trace_lines.parse(trace.read_bytes()).lines
    return [line.data for line in lines if line.data.startswith(wanted)]


@pytest.mark.root
def test_a_file_system_that_the_build_serves_itself_does_not_stop_it(folder: Path) -> None:
    need_root()
    if not Path("/dev/fuse").exists():
        pytest.fail("/dev/fuse is missing: modprobe fuse")
    mount = folder / "mount"
    mount.mkdir()
    program = compiled("fuse_server", folder)
    run = capture(["unshare", "-m", program, mount], folder, timeout=60)
    assert (run.status, run.stderr) == (7, b"")
    script, renamed, linked = (
        os.fsencode(mount / name) for name in ("script", "renamed", "linked")
    )
    found = names(run.trace, "PI", "PP", "RF", "RT", "LF", "LT")
    shell = os.fsencode(Path("/bin").resolve() / "sh")
    assert found[-8:] == [
        *(b"PI|" + shell, b"PP|" + script),
        *(b"RF|" + script, b"RT|" + renamed),
        *(b"LF|" + renamed, b"LT|" + linked),
        *(b"PI|" + shell, b"PP|" + linked),
    ]


@pytest.mark.root
def test_a_string_that_the_build_brings_in_itself_does_not_stop_it(folder: Path) -> None:
    need_root()
    (folder / "a").touch()
    run = capture([compiled("fault_server", folder), folder], folder, timeout=60)
    assert (run.status, run.stderr) == (0, b"")
    a, b = os.fsencode(folder / "a"), os.fsencode(folder / "b")
    assert names(run.trace, "RF", "RT") == [b"RF|" + a, b"RT|" + b]


WORK = """
echo ready
read start
mkdir -p deep/er
printf '#!/bin/sh\\n:\\n' > deep/er/script
chmod +x deep/er/script
ln -s deep link
link/er/script
mv link/er/script link/er/moved
ln link/er/moved link/hard
ln -s link/hard link/soft
cp /bin/true gcc
./gcc @link/hard
rm deep/hard
exit 3
"""
WITH_A_PATH = "open,openat,openat2,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,execve"


@pytest.mark.root
def test_the_loop_asks_only_what_the_kernel_knows_already(folder: Path) -> None:
    need_root()
    need_tool("strace", "strace")
    log = folder / "log"
    kept = ["--response-files", str(folder / "kept")]  # written when the loop is over
    command = PTRACE.command(folder / "trace", ["sh", "-c", WORK], kept)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        tracer = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        watch: list[str | Path] = ["strace", "-e", f"trace={WITH_A_PATH}", "-o", log, "-p", tracer]
        with subprocess.Popen(watch, stderr=subprocess.PIPE) as strace:
            assert strace.stderr
            assert b"attached" in strace.stderr.readline()
            process.communicate(b"\n")
            strace.communicate()
        assert process.returncode == 3
    calls = [line for line in log.read_text().splitlines() if "(" in line and "---" not in line]
    free = re.compile(r'"/proc/|"/proc"|RESOLVE_CACHED|AT_EMPTY_PATH|/kept\.')
    assert len(calls) > 20
    assert [call for call in calls if not free.search(call)] == []
    assert b"/hard" in (folder / "kept").read_bytes()


NR_OPENAT2 = 437


def forbid_openat2() -> None:
    """Take openat2 away, as Linux before 5.6 and old profiles of containers do."""
    forbid(NR_OPENAT2, errno.ENOSYS)


def test_names_are_the_same_on_a_kernel_that_cannot_look_into_its_cache(folder: Path) -> None:
    kinds = ("PI", "PP", "RF", "RT", "LF", "LT", "ST", "SR", "SL")
    found = []
    for prepare in (None, forbid_openat2):
        build = folder / "build"
        build.mkdir()
        trace = folder / "trace"
        done = subprocess.run(
            PTRACE.command(trace, ["sh", "-c", WORK], []),
            cwd=build,
            input=b"\n",
            preexec_fn=prepare,
            check=False,
        )
        assert done.returncode == 3
        found.append(names(trace, *kinds))
        build.rename(folder / f"build{len(found)}")
    assert found[0] == found[1]
    assert b"RT|" + os.fsencode(folder / "build/deep/er/moved") in found[0]
