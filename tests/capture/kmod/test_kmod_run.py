# SPDX-License-Identifier: Apache-2.0
"""One command traced by the kernel module, on a fake machine: held, released, waited for, ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_kernel import FakeControl, Machine

from etrace.capture import registry
from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.kmod import beginning, teardown
from etrace.capture.kmod.backend import KmodBackend
from etrace.capture.kmod.command import Command
from etrace.capture.kmod.session import Session
from etrace.capture.kmod.system import presence, process
from etrace.capture.kmod.system.control import Counter, Option, Request, Started
from etrace.capture.kmod.system.owner import myself
from etrace.capture.ptrace import PtraceBackend
from etrace.capture.remote import service
from etrace.errors import CaptureError

pytestmark = pytest.mark.root


def run(machine: Machine, directory: Path, *command: str, **more: Any) -> Outcome:
    options = Options(directory / ".nfsdb", directory / ".nfsdb.stats", **more)
    return KmodBackend(machine.host).run(list(command), options, None)


def when_there(path: Path, act: Callable[[], object]) -> threading.Thread:
    """Start a thread that acts once a command has made its file."""

    def wait() -> None:
        while not path.exists():
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("status", [0, 1, 125, 255])
def test_the_status_of_the_command_is_handed_on(
    machine: Machine, tmp_path: Path, status: int
) -> None:
    outcome = run(machine, tmp_path, "sh", "-c", f"exit {status}")
    assert (outcome.status, outcome.signal) == (status, 0)
    stats = json.loads((tmp_path / ".nfsdb.stats").read_text())
    assert (stats["ended"], stats["exit_status"], stats["signal"]) == ("exit", status, 0)
    assert (tmp_path / ".nfsdb").exists()
    assert machine.changes() == []


def test_a_signal_of_the_command_is_handed_on(machine: Machine, tmp_path: Path) -> None:
    outcome = run(machine, tmp_path, "sh", "-c", "kill -SEGV $$")
    assert (outcome.status, outcome.signal) == (128 + signal.SIGSEGV, signal.SIGSEGV)
    assert outcome.stats["ended"] == "signal"


def test_the_command_runs_only_once_it_is_traced(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    start = FakeControl.start
    seen = []

    def slow(control: FakeControl, request: Request) -> Started:
        time.sleep(0.2)
        seen.append((mark.exists(), request.root_pid, request.options))
        return start(control, request)

    monkeypatch.setattr(FakeControl, "start", slow)
    run(machine, tmp_path, "sh", "-c", f"echo $$ > {mark}", env=True, thread_names=True)
    run(machine, tmp_path, "sh", "-c", f"rm {mark}; echo $$ > {mark}", usage=False)
    wanted = Option.ENVIRONMENT | Option.THREAD_NAMES | Option.USAGE
    assert [(was_there, options) for was_there, _, options in seen] == [
        (False, wanted),
        (True, Option.NONE),
    ]
    assert seen[1][1] == int(mark.read_text())


def test_the_command_gets_what_etrace_got_and_nothing_more(
    machine: Machine, tmp_path: Path
) -> None:
    show = "ls /proc/$$/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status"
    out = tmp_path / "out"
    run(machine, tmp_path, "sh", "-c", f"{{ {show}; }} > {out}")
    plain = subprocess.run(
        ["sh", "-c", f"{{ {show}; }} > {out}.plain"], check=True, close_fds=False
    )
    assert plain.returncode == 0
    lines = out.read_text().splitlines()
    expected = (tmp_path / "out.plain").read_text().splitlines()
    assert lines == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("no-such-command-here", (127, "no such command in PATH")),
        ("/etc", (126, "it is a directory")),
        ("./lost", (127, "its interpreter '/no/such/interpreter' is missing")),
    ],
)
def test_a_command_that_cannot_run_is_126_or_127(
    machine: Machine,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    shown: tuple[int, str],
) -> None:
    status, text = shown
    with contextlib.chdir(tmp_path):
        lost = Path("lost")
        lost.write_text("#!/no/such/interpreter\n")
        lost.chmod(0o755)
        assert run(machine, tmp_path, name).status == status
    assert text in capfd.readouterr().err
    assert machine.changes() == []


def test_a_command_that_cannot_run_replaces_no_trace(machine: Machine, tmp_path: Path) -> None:
    run(machine, tmp_path, "true")
    before = {path: path.read_bytes() for path in tmp_path.glob(".nfsdb*")}
    machine.behave(stats={"executions": 0})
    assert run(machine, tmp_path, "no-such-command-here").status == 127
    assert {path: path.read_bytes() for path in tmp_path.glob(".nfsdb*")} == before
    assert machine.changes() == []


def test_an_interrupted_build_is_called_so(machine: Machine, tmp_path: Path) -> None:
    assert run(machine, tmp_path, "sh", "-c", "kill -INT $$").stats["ended"] == "interrupted"


def test_a_session_that_cannot_start_runs_no_command(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    forsake = Command.forsake

    def remember(command: Command) -> None:
        held.append(command.pid)
        forsake(command)

    monkeypatch.setattr(Command, "forsake", remember)
    machine.kernel.refusal = "refused"
    with pytest.raises(CaptureError, match="refused"):
        run(machine, tmp_path, "touch", str(tmp_path / "mark"))
    assert not (tmp_path / "mark").exists()
    assert machine.changes() == []
    (pid,) = held
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_progress_is_shown_while_the_command_runs(machine: Machine, tmp_path: Path) -> None:
    machine.kernel.counters[Counter.LIVE] = 0
    seen: list[Progress] = []
    options = Options(tmp_path / ".nfsdb", tmp_path / ".nfsdb.stats")
    KmodBackend(machine.host).run(["sleep", "1"], options, seen.append)
    assert seen[0] == Progress(processes=3, live=0, executions=2, opens=40, n_bytes=5000)


def test_survivors_are_waited_for_a_second_then_named(machine: Machine, tmp_path: Path) -> None:
    machine.kernel.counters[Counter.LIVE] = 1
    machine.behave(trace=f"9,0,1,0!SchedFork|pid={1 << 22 | os.getpid()}\n")
    began = time.monotonic()
    outcome = run(machine, tmp_path, "true")
    assert time.monotonic() - began >= 1
    (remark,) = outcome.remarks
    assert f"({os.getpid()})" in remark
    assert "--wait-all" in remark


def look_for_survivors(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]) -> None:
    """Call `act` before each look at how many tasks have outlived the command, with its number."""
    looks, live = itertools.count(1), Session.live

    def look(traced: Session) -> int:
        act(next(looks))
        return live(traced)

    monkeypatch.setattr(Session, "live", look)


def test_wait_all_waits_for_the_last(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etrace.capture.kmod.run.SURVIVAL_S", 0)
    counters = machine.kernel.counters
    look_for_survivors(monkeypatch, lambda n: counters.update({Counter.LIVE: int(n < 4)}))
    assert run(machine, tmp_path, "true", wait_all=True).remarks == ()
    assert counters[Counter.LIVE] == 0


def test_a_signal_ends_the_wait_for_survivors(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.kernel.counters[Counter.LIVE] = 1
    look_for_survivors(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert run(machine, tmp_path, "true", wait_all=True).status == 0
    assert machine.changes() == []


def test_a_signal_goes_to_the_command(machine: Machine, tmp_path: Path) -> None:
    up = tmp_path / "up"
    sender = when_there(up, lambda: os.kill(os.getpid(), signal.SIGTERM))
    outcome = run(machine, tmp_path, "sh", "-c", f"trap 'exit 7' TERM; : >{up}; sleep 30 & wait")
    sender.join()
    assert outcome.status == 7
    assert machine.changes() == []


def test_a_loss_makes_a_good_build_fail(machine: Machine, tmp_path: Path) -> None:
    machine.kernel.counters[Counter.LOST_EVENTS] = 1234
    outcome = run(machine, tmp_path, "true")
    assert outcome.status == 125
    assert "1,234 events are lost" in outcome.remarks[0]
    assert run(machine, tmp_path, "sh", "-c", "exit 3").status == 3


@pytest.mark.parametrize("status", [0, 4])
def test_a_killed_collector_gets_a_successor(machine: Machine, tmp_path: Path, status: int) -> None:
    def kill() -> None:
        (pid,) = machine.collectors()
        os.kill(pid, signal.SIGKILL)

    up = tmp_path / "up"
    killer = when_there(up, kill)
    outcome = run(machine, tmp_path, "sh", "-c", f": >{up}; sleep 1.5; exit {status}")
    killer.join()
    assert outcome.status == status
    assert (outcome.stats["ended"], outcome.stats["collectors"]) == ("exit", 2)
    assert "another one continues the trace" in outcome.remarks[0]
    assert machine.changes() == []


def test_a_broken_status_line_does_not_stop_the_build(machine: Machine, tmp_path: Path) -> None:
    def broken(_progress: Progress) -> None:
        raise RuntimeError

    options = Options(tmp_path / ".nfsdb", tmp_path / ".nfsdb.stats")
    outcome = KmodBackend(machine.host).run(["sh", "-c", "sleep 1; exit 3"], options, broken)
    assert outcome.status == 3


def test_the_commands_status_is_kept_when_the_session_cannot_be_ended(
    machine: Machine, tmp_path: Path
) -> None:
    take_away = f"rm {machine.states.session_file}"
    outcome = run(machine, tmp_path, "sh", "-c", f"{take_away}; exit 3")
    assert outcome.status == 3
    assert "another process has ended the session" in outcome.remarks[0]


def test_a_module_that_does_not_answer_runs_no_command(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = beginning.begin

    def deaf(*args: Any) -> Any:
        state = begin(*args)
        object.__setattr__(machine.host, "connect", machine.kernel.refuse)
        return state

    monkeypatch.setattr("etrace.capture.kmod.run.begin", deaf)
    with pytest.raises(CaptureError, match="does not answer"):
        run(machine, tmp_path, "touch", str(tmp_path / "mark"))
    assert not (tmp_path / "mark").exists()
    assert machine.states.read() is None


def test_the_backend_is_refused_to_others_than_root_at_no_cost(machine: Machine) -> None:
    program = (
        "import os, socket, sys\n"
        "from etrace.capture.kmod.backend import KmodBackend, presence\n"
        "from etrace.capture.remote import protocol, service\n"  # nobody may not read them
        "import etrace.capture.backend\n"
        "presence.LOADED_MODULES = '/'; os.seteuid(65534)\n"
        "probe = KmodBackend().probe()\n"
        "assert not probe.works and 'root' in probe.reason, probe\n"
        "assert 'pyroute2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])


def test_the_backend_is_probed_by_loading_the_module(machine: Machine) -> None:
    backend = KmodBackend(machine.host)
    assert backend.probe().works
    assert machine.modules.loads == 1
    assert machine.changes() == []
    machine.modules.refusal = "Key was rejected by service"
    assert "Key was rejected" in backend.probe().reason


@pytest.mark.parametrize(("takes_modules", "advice"), [(True, "build"), (False, "use a kernel")])
def test_a_module_is_to_be_built_where_the_kernel_takes_modules(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    takes_modules: bool, advice: str,
) -> None:  # fmt: skip
    place = tmp_path if takes_modules else tmp_path / "none"
    monkeypatch.setattr(presence, "LOADED_MODULES", str(place))
    machine.modules.available = False
    obstacle = KmodBackend(machine.host).obstacle()
    assert obstacle is not None
    assert obstacle.hint.startswith(advice)


@pytest.mark.parametrize("takes_modules", [True, False])
def test_a_user_gets_the_advice_to_start_the_service_only_where_it_could_load_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_modules: bool
) -> None:
    place = tmp_path if takes_modules else tmp_path / "none"
    monkeypatch.setattr(presence, "LOADED_MODULES", str(place))
    monkeypatch.setattr(service, "SOCKET", str(tmp_path / "etraced.sock"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    obstacle = KmodBackend().obstacle()
    assert obstacle is not None
    assert ("systemctl" in obstacle.hint) is takes_modules
    assert obstacle.hint.startswith("use a kernel") is not takes_modules


def test_what_is_in_the_way_is_found_without_loading(machine: Machine, tmp_path: Path) -> None:
    backend = KmodBackend(machine.host)
    machine.modules.available = False
    obstacle = backend.obstacle()
    assert obstacle is not None
    assert "no etrace.ko" in obstacle.reason
    machine.modules.available = True
    assert backend.obstacle() is None
    plan = beginning.Plan(tmp_path, myself(), process.identify(os.getpid()))
    beginning.begin(machine.host, plan, list[str]().append)
    obstacle = backend.obstacle()
    assert obstacle is not None
    assert "a session is already running" in obstacle.reason
    teardown.end(machine.host, list[str]().append)


def test_a_module_that_could_work_and_does_not_is_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = (KmodBackend(machine.host), PtraceBackend())
    monkeypatch.setattr(registry, "COMPLETE", backends)
    monkeypatch.setattr(PtraceBackend, "obstacle", lambda _self: None)
    said: list[str] = []
    assert registry.choose("auto", said.append) is backends[0]
    machine.modules.refusal = "Key was rejected by service"
    assert registry.choose("auto", said.append) is backends[1]
    assert said == ["kmod is not used: Key was rejected by service"]
    machine.modules.available = False
    said.clear()
    assert registry.choose("auto", said.append) is backends[1]
    assert said == []
