# SPDX-License-Identifier: Apache-2.0
"""What etraced takes from a caller: their own file, and a sleeping child with their own rights."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_kernel import NOBODY
from service.host import DROP, as_nobody, python
from trying import until

from etrace.service import caller as caller_module
from etrace.service.caller import (
    Caller,
    RefusedError,
    check_process,
    check_trace,
    file_size_limit,
)

pytestmark = pytest.mark.root
LIBC = ctypes.CDLL(None)
MNT_DETACH = 2
SLEEP = ["/bin/sleep", "60"]


@pytest.fixture
def me() -> Caller:
    """The parent of all processes here, as if it were the user's."""
    return Caller(os.getpid(), NOBODY.uid, NOBODY.gid)


@pytest.fixture
def started() -> Iterator[Any]:
    """Starts processes; returns their pidfd."""
    with ExitStack() as stack:

        def start(process: subprocess.Popen[bytes]) -> int:
            stack.callback(process.wait)
            stack.callback(process.kill)
            pidfd = os.pidfd_open(process.pid)
            stack.callback(os.close, pidfd)
            return pidfd

        yield start


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_module, "STILL_S", 3.0)


def test_a_sleeping_child_of_the_caller_may_be_traced(me: Caller, started: Any) -> None:
    target = check_process(started(child := as_nobody(SLEEP)), me)
    assert target.pid == child.pid
    target.check()


def test_a_process_of_another_user_is_refused(me: Caller, started: Any) -> None:
    with pytest.raises(RefusedError, match="another user"):
        check_process(started(subprocess.Popen(SLEEP)), me)


@pytest.mark.parametrize(
    ("mode", "gid", "reason"),
    [
        (0o4755, 0, "another user"),
        (0o2755, 1, "rights that its user does not have"),
        (0o711, 0, "rights that its user does not have"),
    ],
    ids=["set-uid", "set-gid", "unreadable"],
)
def test_a_program_with_other_rights_is_refused(
    me: Caller, started: Any, public: Path, mode: int, gid: int, reason: str
) -> None:
    path = public / "sleeper"
    shutil.copy("/bin/sleep", path)
    os.chown(path, 0, gid)
    path.chmod(mode)
    with pytest.raises(RefusedError, match=reason):
        check_process(started(as_nobody([str(path), "60"])), me)


def test_capabilities_of_others_are_refused(started: Any) -> None:
    weak, strong = as_nobody(SLEEP), subprocess.Popen(SLEEP)
    started(weak)
    started(strong)
    fields = caller_module._fields(strong.pid) | {"Owner": "0", "PPid": str(weak.pid)}
    with pytest.raises(RefusedError, match="capabilities"):
        caller_module._refuse_foreign(fields, Caller(weak.pid, 0, 0))


def test_a_process_of_another_parent_is_refused(me: Caller, started: Any) -> None:
    other = Caller(1, me.uid, me.gid)
    with pytest.raises(RefusedError, match="not a child"):
        check_process(started(as_nobody(SLEEP)), other)


def test_a_process_with_threads_is_refused(me: Caller, started: Any) -> None:
    thread = "drop(); threading.Thread(target=time.sleep, args=[60]).start()"
    pidfd = started(process := python(f"import threading, time\n{DROP}\n{thread}"))
    until(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 2)
    with pytest.raises(RefusedError, match="threads"):
        check_process(pidfd, me)


def test_a_process_that_does_not_wait_is_refused(me: Caller, started: Any) -> None:
    with pytest.raises(RefusedError, match="does not wait"):
        check_process(started(as_nobody(["/bin/sh", "-c", "while :; do :; done"])), me)


def test_a_process_that_ran_meanwhile_is_refused(me: Caller, started: Any) -> None:
    """It may have become a set-uid program and back."""
    process = as_nobody(["/bin/cat"], stdin=subprocess.PIPE)
    target = check_process(started(process), me)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.read(1)
    until(lambda: "S (sleeping)" in Path(f"/proc/{process.pid}/status").read_text())
    with pytest.raises(RefusedError, match="ran before it was traced"):
        target.check()


def test_a_process_that_has_ended_is_refused(me: Caller, started: Any) -> None:
    process = as_nobody(SLEEP)
    pidfd = started(process)
    target = check_process(pidfd, me)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(RefusedError, match="has ended"):
        target.check()
    with pytest.raises(RefusedError, match="has ended"):
        check_process(pidfd, me)


def test_what_is_not_a_pidfd_is_refused(me: Caller, tmp_path: Path) -> None:
    with (tmp_path / "x").open("w+b") as file, pytest.raises(RefusedError, match="no pidfd"):
        check_process(file.fileno(), me)


# ---- the trace


def opened(path: Path, flags: int, uid: int = NOBODY.uid) -> int:
    fd = os.open(path, flags | os.O_CREAT, 0o600)
    os.chown(path, uid, uid)
    return fd


def test_a_trace_of_the_caller_is_taken(me: Caller, tmp_path: Path) -> None:
    fd = opened(tmp_path / "x", os.O_RDWR)
    check_trace(fd, me)
    os.close(fd)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_PATH])
def test_a_trace_that_cannot_be_read_and_written_is_refused(
    me: Caller, tmp_path: Path, flags: int
) -> None:
    os.close(opened(tmp_path / "x", os.O_RDWR))
    fd = os.open(tmp_path / "x", flags)
    with pytest.raises(RefusedError, match="not open for reading and writing"):
        check_trace(fd, me)
    os.close(fd)


def test_a_file_of_another_user_is_refused(me: Caller, tmp_path: Path) -> None:
    """A set-uid program may open it, and be made to hand it on."""
    fd = opened(tmp_path / "x", os.O_RDWR, 0)
    with pytest.raises(RefusedError, match="another user"):
        check_trace(fd, me)
    os.close(fd)


@pytest.mark.parametrize(
    "path",
    ["/proc/self/mem", "/proc/self/oom_score_adj", "/sys/kernel/mm/ksm/run"],
)
def test_a_file_of_the_kernel_is_refused(me: Caller, path: str) -> None:
    """stat(2) calls it a regular file of the caller."""
    fd = os.open(path, os.O_RDWR)
    with pytest.raises(RefusedError, match="keeps no files"):
        check_trace(fd, Caller(me.pid, os.fstat(fd).st_uid, 0))
    os.close(fd)


def test_a_file_in_memory_that_no_mount_shows_is_refused(me: Caller) -> None:
    fd = os.memfd_create("trace")
    with pytest.raises(RefusedError, match="unknown to the caller"):
        check_trace(fd, Caller(me.pid, 0, 0))
    os.close(fd)


def test_a_file_system_that_a_user_serves_is_refused(me: Caller, tmp_path: Path) -> None:
    """Nothing is asked of it, so nothing waits for it."""
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id={NOBODY.uid},group_id={NOBODY.gid}"
    assert LIBC.mount(b"fuse", os.fsencode(tmp_path), b"fuse.x", 0, options.encode()) == 0
    try:
        fd = os.open(tmp_path, os.O_PATH)
        with pytest.raises(RefusedError, match=r"fuse\.x"):
            check_trace(fd, me)
        os.close(fd)
    finally:
        assert LIBC.umount2(os.fsencode(tmp_path), MNT_DETACH) == 0
        os.close(server)


def test_what_is_not_a_file_is_refused(me: Caller) -> None:
    for fd in (*os.pipe(), os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY)):
        with pytest.raises(RefusedError, match=r"not a regular file|keeps no files"):
            check_trace(fd, me)
        os.close(fd)


def test_the_callers_limit_of_file_sizes_is_known(started: Any) -> None:
    command = ["/bin/sh", "-c", "ulimit -f 8; exec sleep 60"]
    process = as_nobody(command)
    started(process)
    until(lambda: file_size_limit(Caller(process.pid, 1, 1)) == 8 * 512)
    assert file_size_limit(Caller(1 << 30, 1, 1)) == -1
