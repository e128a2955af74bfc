# SPDX-License-Identifier: Apache-2.0
"""Sessions of BPF programs: a process that runs is traced from `etrace start` to `etrace stop`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backends import BPF, need_root

from etrace.capture.bpf import session
from etrace.capture.kmod.stage import NoSessionError
from etrace.capture.kmod.state import StateDirectory
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.owner import myself
from etrace.errors import CaptureError

ETRACE = str(Path(sys.executable).parent / "etrace")
pytestmark = pytest.mark.root


class Root:
    """A program that runs before it is traced, and takes lines."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.ask() == "ready"

    def ask(self, line: str = "") -> str:
        """Send a line that prints nothing, if there is one; return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if line:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


SHELL = 'echo ready; while read -r line; do eval "$line"; echo done; done'
THREADS = """
import sys, threading
turns = [threading.Event() for _ in range(2)]
def work(number):
    turns[number].wait()
    open(f"/etc/{('hosts', 'passwd')[number]}").close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for thread in threads: thread.start()
print("ready", flush=True)
sys.stdin.readline()
for turn in turns: turn.set()
for thread in threads: thread.join()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def states(tmp_path: Path) -> StateDirectory:
    """Return where the state of the session is; for this test alone."""
    need_root()
    return StateDirectory(tmp_path / "run")


@pytest.fixture
def started() -> Iterator[Callable[..., Root]]:
    """Return what starts a program to trace, by default a shell."""
    roots: list[Root] = []

    def start(*command: str) -> Root:
        roots.append(Root(*(command or ("bash", "-c", SHELL))))
        return roots[-1]

    yield start
    for root in roots:
        root.close()


def plan(root: Root, where: Path) -> session.Plan:
    identity = process.identify(root.process.pid)
    assert identity is not None
    return session.Plan(where, myself(), identity)


def test_a_shell_is_traced_from_start_to_stop(
    states: StateDirectory, started: Callable[..., Root], tmp_path: Path
) -> None:
    root = started()
    root.ask(f"echo > {tmp_path}/before")
    state = session.begin(states, plan(root, tmp_path))
    assert state.root == f"process {root.process.pid} (bash)"
    root.ask(f"echo > {tmp_path}/itself")
    root.ask("cat /etc/hostname >/dev/null")
    ended = session.end(states, print)
    root.ask(f"echo > {tmp_path}/after")
    trace = ended.trace.read_bytes()
    assert trace.startswith(b"INITCWD=%s\n" % os.fsencode(Path.cwd()))
    assert b"!FN|%s/itself\n" % bytes(tmp_path) in trace
    assert b"!A[1]/etc/hostname\n" in trace
    assert b"!FN|/etc/hostname\n" in trace
    assert b"/before\n" not in trace
    assert b"/after\n" not in trace
    stats = ended.stats
    assert (stats["lost"], stats["orphans"], stats["executions"], stats["ended"]) == (
        0,
        0,
        1,
        "exit",
    )
    assert ended.messages == ()
    assert root.process.poll() is None
    assert session.read(states) is None


def test_all_threads_of_the_process_are_traced(
    states: StateDirectory, started: Callable[..., Root], tmp_path: Path
) -> None:
    root = started(sys.executable, "-c", THREADS)
    session.begin(states, plan(root, tmp_path))
    root.ask("go")
    ended = session.end(states, print)
    trace = ended.trace.read_bytes()
    assert b"!FN|/etc/hosts\n" in trace
    assert b"!FN|/etc/passwd\n" in trace
    assert ended.stats["threads"] == 2


def test_the_end_of_the_process_does_not_end_the_session(
    states: StateDirectory, started: Callable[..., Root], tmp_path: Path
) -> None:
    root = started()
    session.begin(states, plan(root, tmp_path))
    root.ask(f"(sleep 1; cat /etc/hosts >/dev/null; echo > {tmp_path}/late) & exec 3>&1")
    root.close()
    for _ in range(1000):
        if (tmp_path / "late").exists():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    trace = session.end(states, print).trace.read_bytes()
    assert b"!FN|/etc/hosts\n" in trace
    assert b"!Exit|status=137\n" in trace


def test_one_session_at_a_time_and_a_killed_one_is_cleaned_up(
    states: StateDirectory, started: Callable[..., Root], tmp_path: Path
) -> None:
    root = started()
    state = session.begin(states, plan(root, tmp_path))
    with pytest.raises(CaptureError, match="a BPF session is already running"):
        session.begin(states, plan(root, tmp_path / "other"))
    root.ask("cat /etc/hostname >/dev/null")
    os.kill(state.keeper.pid, signal.SIGKILL)
    os.waitpid(state.keeper.pid, 0)
    assert not state.keeper.is_alive()
    ended = session.end(states, print)
    assert ended.stats == {}
    assert ended.trace.read_bytes().startswith(b"INITCWD=")
    with pytest.raises(NoSessionError):
        session.end(states, print)
    session.begin(states, plan(root, tmp_path))
    root.ask("cat /etc/hosts >/dev/null")
    assert b"!FN|/etc/hosts\n" in session.end(states, print).trace.read_bytes()


def test_a_long_wait_for_the_end_is_reported(
    states: StateDirectory,
    started: Callable[..., Root],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = started()
    keeper = session.begin(states, plan(root, tmp_path)).keeper.pid
    root.ask("cat /etc/hosts >/dev/null")
    monkeypatch.setattr(session, "TELL_AFTER_S", 0.1)
    said: list[str] = []

    def go_on(text: str) -> None:
        said.append(text)
        os.kill(keeper, signal.SIGCONT)

    os.kill(keeper, signal.SIGSTOP)  # as if the disk did not answer
    ended = session.end(states, go_on)
    assert said == [f"etrace-bpf ({keeper}) is still writing the trace; Ctrl-C ends only the wait"]
    assert b"!FN|/etc/hosts\n" in ended.trace.read_bytes()


def test_a_process_of_another_container_is_refused(
    states: StateDirectory, started: Callable[..., Root], tmp_path: Path
) -> None:
    root = started("unshare", "--mount", "bash", "-c", SHELL)
    with pytest.raises(CaptureError, match="is in another container: trace it from there"):
        session.begin(states, plan(root, tmp_path))
    assert session.read(states) is None
    assert not (tmp_path / ".nfsdb").exists()


@pytest.fixture
def group() -> Iterator[Path]:
    """Return a control group."""
    mount = process.cgroup_mount_point()
    assert mount is not None, "control groups version 2 are not mounted"
    path = mount / f"etrace-test-{os.getpid()}"
    (path / "below").mkdir(parents=True)
    yield path
    (path / "below").rmdir()
    path.rmdir()


def test_the_members_of_a_control_group_are_traced(
    states: StateDirectory, group: Path, started: Callable[..., Root], tmp_path: Path
) -> None:
    member, moved, outside = started(), started(), started()
    (group / "cgroup.procs").write_text(str(member.process.pid))
    directory = process.cgroup_directory(str(group))
    state = session.begin(states, session.Plan(tmp_path, myself(), cgroup=directory))
    assert state.root == f"cgroup {group}"
    for root in (member, moved, outside):
        root.ask(f"echo > {tmp_path}/{root.process.pid}-early")
    (group / "below" / "cgroup.procs").write_text(str(moved.process.pid))
    moved.ask(f"(cat /etc/hostname >/dev/null; echo > {tmp_path}/moved)")
    outside.ask(f"echo > {tmp_path}/outside")
    ended = session.end(states, print)
    trace = ended.trace.read_bytes()
    seen = [b"!FN|%s/%s\n" % (bytes(tmp_path), name) in trace for name in (
        b"%d-early" % member.process.pid, b"moved",
        b"%d-early" % moved.process.pid, b"%d-early" % outside.process.pid, b"outside",
    )]  # fmt: skip
    assert seen == [True, True, False, False, False]
    assert (ended.stats["lost"], ended.stats["orphans"]) == (0, 0)


def test_what_is_not_a_control_group_is_named(tmp_path: Path) -> None:
    need_root()
    done = subprocess.run(
        [BPF.path(), "-o", tmp_path / "trace", "--cgroup", "/tmp"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert "'/tmp' is not the directory of a control group, version 2" in done.stderr


def test_only_root_may_trace_what_runs(public: Path, started: Callable[..., Root]) -> None:
    need_root()
    root = started()
    copy = public / "etrace-bpf"
    copy.write_bytes(Path(BPF.path()).read_bytes())
    copy.chmod(0o755)
    done = subprocess.run(
        [copy, "-o", public / "trace", "--pid", str(root.process.pid)],
        user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert "only root may trace a process that runs" in done.stderr


def test_the_commands_start_status_and_stop(tmp_path: Path) -> None:
    need_root()
    script = f"""
        {ETRACE} start --backend bpf -o {tmp_path} || exit 9
        {ETRACE} status --json
        cat /etc/hostname >/dev/null
        {ETRACE} stop && {ETRACE} stop --backend bpf
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["running"] is True
    assert f"into {tmp_path}; to end it: sudo etrace stop" in done.stderr
    assert "etrace: error: no session is running" in done.stderr
    assert b"!FN|/etc/hostname\n" in (tmp_path / ".nfsdb").read_bytes()


@pytest.mark.parametrize("option", ["--zstd", "--isolate", "--open-once", "--descendants"])
def test_what_bpf_cannot_do_is_refused(option: str) -> None:
    need_root()
    done = subprocess.run(
        [ETRACE, "start", "--backend", "bpf", option], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{option}: bpf cannot do that" in done.stderr
