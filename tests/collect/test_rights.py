# SPDX-License-Identifier: Apache-2.0
"""What a collector asks of the machine, as root and as an ordinary user."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from backends import need_root
from collect.collector import Live, close, now_ns, program, replay
from collect.ring_buffer import Instance, plain_event

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_IPC_LOCK, CAP_SYS_RESOURCE = 1, 14, 24
NOBODY = 65534
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


def status(live: Live, key: str) -> list[str]:
    text = Path(f"/proc/{live.process.pid}/status").read_text()
    return text.partition(f"{key}:")[2].splitlines()[0].split()


def test_memory_is_not_locked_below_a_limit(tmp_path: Path) -> None:
    with ExitStack() as stack:
        live = Live(tmp_path, stack, limit=without_rights)
        assert status(live, "VmLck")[0] == "0"
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
        assert int(status(live, "VmLck")[0]) > 0


@pytest.mark.root
@pytest.mark.parametrize("kind", ["CapPrm", "CapEff", "CapInh", "CapAmb"])
def test_root_keeps_only_the_right_to_lock_memory(tmp_path: Path, kind: str) -> None:
    need_root()
    kept = 0 if kind in {"CapInh", "CapAmb"} else 1 << CAP_IPC_LOCK
    with ExitStack() as stack, (tmp_path / "trace").open("wb") as out:
        live = Live(tmp_path, stack, output_fd=out.fileno(), stats=False)
        assert int(status(live, kind)[0], 16) == kept
        event = close(0)
        live.write(0, event)
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(30) == 0
    assert (tmp_path / "trace").read_bytes() == event.lines


@pytest.mark.root
def test_a_file_of_stats_can_be_made_anywhere_at_the_end(tmp_path: Path) -> None:
    need_root()
    tmp_path.chmod(0o700)
    os.chown(tmp_path, NOBODY, NOBODY)
    with ExitStack() as stack:
        live = Live(tmp_path, stack)
        wanted = 1 << CAP_IPC_LOCK | 1 << CAP_DAC_OVERRIDE
        assert int(status(live, "CapEff")[0], 16) == wanted
        live.end()
        assert live.stats()["events"] == 0


@pytest.mark.root
def test_a_trace_of_a_user_is_written_on_the_account_of_that_user(tmp_path: Path) -> None:
    """What is kept for root on a full disk stays root's; and the user cannot signal it."""
    need_root()
    with ExitStack() as stack, (tmp_path / "trace").open("wb") as out:
        os.fchown(out.fileno(), NOBODY, NOBODY)
        live = Live(tmp_path, stack, output_fd=out.fileno(), stats=False)
        assert status(live, "Uid") == ["0", "0", "0", str(NOBODY)]
        assert status(live, "Gid")[3] == str(NOBODY)
        assert int(status(live, "CapEff")[0], 16) == 1 << CAP_IPC_LOCK
        events = [close(cpu, now_ns()) for cpu in range(3)]
        for event in events:
            live.write(event.cpu, event)
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(30) == 0
    assert (tmp_path / "trace").read_bytes() == b"".join(event.lines for event in events)


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
