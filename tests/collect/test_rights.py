# SPDX-License-Identifier: Apache-2.0
"""What a collector asks of the machine, as root and as an ordinary user."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from backends import need_root
from collector import program, replay
from collector_live import Live, close, now_ns
from ring_buffer import Instance, plain_event

PR_CAPBSET_DROP = 24
CAP_IPC_LOCK, CAP_SYS_RESOURCE = 14, 24
LIMIT = 8 << 20  # of systemd


def without_rights() -> None:
    """Become, in the child, a process that may lock no more than usual; root keeps the rest."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_IPC_LOCK, CAP_SYS_RESOURCE):
            assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LIMIT, LIMIT))


def low() -> None:
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LIMIT, LIMIT))


def status(live: Live, key: str) -> int:
    text = Path(f"/proc/{live.process.pid}/status").read_text()
    return int(text.partition(f"{key}:")[2].split()[0])


def test_memory_is_not_locked_below_a_limit(tmp_path: Path) -> None:
    with ExitStack() as stack:
        live = Live(tmp_path, stack, limit=without_rights)
        assert status(live, "VmLck") == 0
        events = [close(0, now_ns()) for _ in range(20_000)]
        for at in range(0, len(events), 50):
            live.write(0, *events[at : at + 50])
        assert live.end() == b"".join(event.lines for event in events)


@pytest.mark.root
def test_memory_is_locked_for_whom_limits_do_not_apply(tmp_path: Path) -> None:
    need_root()  # for CAP_IPC_LOCK
    if b"__asan_init" in program().read_bytes():
        pytest.skip("AddressSanitizer makes mlockall() do nothing")
    with ExitStack() as stack:
        live = Live(tmp_path, stack, limit=low)
        assert status(live, "VmLck") > 0


def test_a_saved_instance_is_read_as_any_program_reads(tmp_path: Path) -> None:
    made = Instance(tmp_path)
    made.add_events(0, [plain_event(1 << 22 | 7, 10**10, 0, "Close", {"fd": 3})])
    done = replay(made.write(), "-v")
    assert (done.status, done.messages) == (0, "")


def in_time_namespace(offset_s: int, *options: str | Path) -> subprocess.CompletedProcess[str]:
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(
        ["unshare", *user, "--time", "--monotonic", str(offset_s), program(), *options],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_shifted_clock_is_refused(tmp_path: Path) -> None:
    done = in_time_namespace(1000, "--tracefs", tmp_path)
    assert done.returncode == 125
    assert "this time namespace shifts CLOCK_MONOTONIC by 1000 s" in done.stderr
    assert "nsenter" in done.stderr


def test_a_clock_that_is_not_shifted_is_taken(tmp_path: Path) -> None:
    done = in_time_namespace(0, "--tracefs", tmp_path)
    assert "there is no ftrace instance" in done.stderr


def test_a_saved_instance_is_read_under_any_clock(tmp_path: Path) -> None:
    made = Instance(tmp_path)
    event = plain_event(1 << 22 | 7, 10**10, 0, "Close", {"fd": 3})
    made.add_events(0, [event])
    done = in_time_namespace(1000, "--raw", made.write())
    assert (done.returncode, done.stdout) == (0, event.lines.decode())
