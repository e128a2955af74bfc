# SPDX-License-Identifier: Apache-2.0
"""A capture that is killed leaves nothing: no tracer, no build without one, no directory."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trying
from backends import need_tool

from etrace.capture import orphans

BIN = Path(sys.executable).parent
#: a process with a child, and one that has left its group and parent; all hold the pipe open
BUILD = "exec 7> pipe; (setsid sleep 1000 &) ; sleep 1000 & echo up >&7; sleep 1000; true"
#: all in one group
GROUP = "exec 7> pipe; sleep 1000 & echo up >&7; sleep 1000; true"
CAPTURES = {
    "unix-tracer ptrace": ["unix-tracer", "--backend", "ptrace", "-o", "out.json", "--"],
    "unix-tracer strace": ["unix-tracer", "--backend", "strace", "-o", "out.json", "--"],
    "unix-tracer preload": ["unix-tracer", "--backend", "preload", "-o", "out.json", "--"],
    "etrace run strace": ["etrace", "run", "--backend", "strace", "--"],
}


def start(words: list[str], place: Path, build: str = BUILD) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TMPDIR": str(place / "tmp")}
    (place / "tmp").mkdir()
    os.mkfifo(place / "pipe")
    return subprocess.Popen(
        [str(BIN / words[0]), *words[1:], "sh", "-c", build],
        cwd=place, env=env, start_new_session=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(CAPTURES))
def test_a_killed_capture_ends_its_build_and_leaves_no_directory(name: str, tmp_path: Path) -> None:
    need_tool("strace", "strace")
    with start(CAPTURES[name], tmp_path) as capture, (tmp_path / "pipe").open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        assert any((tmp_path / "tmp").iterdir())
        os.killpg(capture.pid, signal.SIGKILL) if "ptrace" in name else capture.kill()
        assert pipe.read() == b""  # the last process of the build has ended
    trying.until(lambda: not any((tmp_path / "tmp").iterdir()))
    assert not (tmp_path / "out.json").exists()


def test_a_signal_that_kills_strace_as_well_leaves_nothing_of_the_group(tmp_path: Path) -> None:
    capture = start(CAPTURES["unix-tracer strace"], tmp_path, GROUP)
    with (tmp_path / "pipe").open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        os.killpg(capture.pid, signal.SIGKILL)  # strace with it
        assert pipe.read() == b""
    assert capture.wait() == -signal.SIGKILL
    trying.until(lambda: not any((tmp_path / "tmp").iterdir()))


def test_a_child_that_one_look_misses_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is listed may end when its child is not listed yet."""
    tracer = subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; exit 7"],
                              stdout=subprocess.PIPE)  # fmt: skip
    assert tracer.stdout is not None
    child = os.pidfd_open(int(tracer.stdout.readline()))
    looks, below = iter([set[int](), set[int]()]), orphans._below
    monkeypatch.setattr(orphans, "_below", lambda pid: next(looks, None) or below(pid))
    orphans._end(tracer.pid, os.pidfd_open(tracer.pid))
    assert tracer.wait() == 7
    select.select([child], [], [])  # it has ended


def test_the_directory_goes_away_when_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with orphans.temporary_directory("x-") as (directory, ends_with_me):
        child = subprocess.Popen(["sleep", "1000"])
        ends_with_me(child.pid)
        assert Path(directory).stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []
    assert child.poll() is None  # what goes on is left alone
    child.kill()
    child.wait()


def test_the_process_that_waits_holds_nothing_open(tmp_path: Path) -> None:
    """A reader of the output or of any descriptor does not wait for it."""
    program = (
        "import os, sys\nfrom etrace.capture import orphans\n"
        "with orphans.temporary_directory('x-') as (directory, _):\n"
        "    os.write(1, b'in\\n'); os.close(1); os.close(7); sys.stdin.read()\n"
    )
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", f"import os\nos.dup2({writer}, 7)\nos.close({writer})\n{program}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[writer],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as child:  # fmt: skip
        os.close(writer)
        assert child.stdout is not None
        assert child.stdout.read() == b"in\n"
        assert os.read(reader, 1) == b""
        child.communicate()
    os.close(reader)
    assert child.returncode == 0
    assert list(tmp_path.iterdir()) == []
