# SPDX-License-Identifier: Apache-2.0
"""A machine to test the control of the kernel module on: all of it but the processes is fake.

The session belongs to a socket, as the real one does: the fake kernel holds the other end of a
pair and sees when the last copy is closed. The collector is a real process, so it can be killed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etrace.capture.kmod import beginning
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.session import Session
from etrace.capture.kmod.state import StateDirectory
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Control, Counter, Phase, Request, Started, Status
from etrace.capture.kmod.system.module import Modules
from etrace.capture.kmod.system.owner import Owner, myself
from etrace.capture.kmod.system.tracefs import Tracefs
from etrace.errors import CaptureError

COLLECTOR = """\
#!{python} -SE
import json, os, signal, sys
args = dict(zip(sys.argv[1:], [*sys.argv[2:], ""]))
behaviour = lambda: json.load(open({behaviour!r}))
signal.signal(signal.SIGTERM, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
number = lambda name: int(args[name])
if behaviour().get("refuses"):
    sys.exit("etrace_cat: " + behaviour()["refuses"])
if "--cwd" in args:
    os.write(number("--output-fd"), b"INITCWD=" + os.fsencode(args["--cwd"]) + b"\\n")
counts = dict(processes=3, live=1, executions=2, opens=40, bytes=5000, records=10, lost=0)
os.write(number("--status-fd"), json.dumps(counts).encode() + b"\\n")
os.write(number("--ready-fd"), b"\\n")
os.close(number("--ready-fd"))
if os.devnull in args:
    sys.exit()
signal.sigwait({{signal.SIGTERM}})
if hangs := behaviour().get("hangs"):
    for each in hangs["signals"]:
        os.kill(hangs["pid"], each)
    open(hangs["until"]).close()
os.write(number("--output-fd"), behaviour().get("trace", "4194305,0,1,0!Exit|status=0\\n").encode())
stats = counts | dict(events=10, lines=20, threads=0, duration_ns=10**9, ended="stopped")
stats["records"] = behaviour().get("records", 10)
stats |= behaviour().get("stats", {{}})
os.write(number("--stats-fd"), json.dumps(stats).encode())
"""

INSTANCE_FILES = {
    "options/context-info": "1",
    "options/overwrite": "1",
    "tracing_on": "1",
    "buffer_size_kb": "7 (expanded: 1408)",
    "buffer_percent": "50",
    "per_cpu/cpu0/stats": "entries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n",
    "per_cpu/cpu1/stats": "entries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n",
}


@dataclass
class FakeModules(Modules):
    """A module that can be loaded, or not."""

    loaded: bool = False
    available: bool = True
    refusal: str = ""
    busy: bool = False
    loads: int = 0
    is_used: Callable[[], bool] = lambda: False

    def is_loaded(self) -> bool:
        return self.loaded

    def source(self) -> str:
        return "modprobe" if self.available or self.loaded else ""

    def load(self, file: Path | None) -> None:
        if self.refusal:
            raise CaptureError(self.refusal, "a hint")
        self.loaded = True
        self.loads += 1

    def unload(self) -> None:
        if self.busy or self.is_used():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self.loaded = False


@dataclass
class FakeKernel:
    """What the module knows; one session at a time, owned by a socket."""

    phase: Phase = Phase.IDLE
    session: int = 0
    request: Request | None = None
    counters: dict[Counter, int] = field(default_factory=lambda: {Counter.RECORDS: 10})
    missing: tuple[str, ...] = ()
    refusal: str = ""
    owner: socket.socket | None = None

    def settle(self) -> None:
        """End the session when nobody has its socket."""
        if self.phase is not Phase.RUNNING or self.owner is None:
            return
        poll = select.poll()
        poll.register(self.owner, select.POLLIN)
        if poll.poll(0):
            self.phase = Phase.STOPPED

    def status(self) -> Status:
        self.settle()
        return Status(
            self.phase, self.session, 1, 4242, 0, counters=self.counters,
            missing_probes=self.missing,
        )  # fmt: skip

    def refuse(self) -> Control:
        raise CaptureError("the kernel does not answer")

    def connect(self) -> Control:
        return FakeControl(self)


class FakeControl:
    """A connection to a FakeKernel."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = kernel
        self.ours, self.theirs = socket.socketpair()

    def start(self, request: Request) -> Started:
        kernel = self.kernel
        kernel.settle()
        if kernel.refusal:
            raise CaptureError(kernel.refusal, "a hint")
        assert kernel.phase is not Phase.RUNNING
        kernel.phase, kernel.request, kernel.owner = Phase.RUNNING, request, self.theirs
        kernel.session += 1
        return Started(kernel.session, kernel.missing)

    def stop(self, session: int) -> Status:
        assert session == self.kernel.session
        self.kernel.phase = Phase.STOPPED
        return self.kernel.status()

    def status(self) -> Status:
        return self.kernel.status()

    def fileno(self) -> int:
        return self.ours.fileno()

    def close(self) -> None:
        self.ours.close()


@dataclass
class Machine:
    """A fake machine and the Host that a session sees of it."""

    root: Path
    kernel: FakeKernel
    modules: FakeModules
    host: Host

    @property
    def instance(self) -> Path:
        return self.root / "tracing" / "instances" / "etrace"

    @property
    def states(self) -> StateDirectory:
        return self.host.states

    def behave(self, **behaviour: Any) -> None:
        """Say what the collector does."""
        (self.root / "behaviour.json").write_text(json.dumps(behaviour))

    def hang(self, *signals: int) -> Path:
        """Let the collector hang when it is to end, after it has sent us signals.

        It goes on when the FIFO that is returned gets a writer.
        """
        until = self.root / "until"
        os.mkfifo(until)
        self.behave(hangs={"signals": signals, "pid": os.getpid(), "until": str(until)})
        return until

    def set_file(self, name: str, value: str) -> None:
        (self.instance / name).write_text(value)

    def changes(self) -> list[str]:
        """What differs from before the first session, in words."""
        left = [str(p.name) for p in self.states.path.glob("*") if p.name != "lock"]
        found = [f"/run holds {name}" for name in left]
        found += ["the instance is there"] if self.instance.exists() else []
        found += ["the module is loaded"] if self.modules.loaded else []
        self.kernel.settle()
        found += ["a session runs"] if self.kernel.phase is Phase.RUNNING else []
        return found + [f"process {pid} runs" for pid in self.collectors()]

    def end_collectors(self) -> None:
        """End all processes."""
        for pid in self.collectors():
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def collectors(self) -> list[int]:
        """Numbers of the collectors that run."""
        return collectors_of(self.root / "etrace_cat")


def _make_instance(path: Path) -> None:
    for name, content in INSTANCE_FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def collectors_of(program: Path) -> list[int]:
    """Numbers of the processes of a collector."""
    wanted = str(program).encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _remove_instance(path: Path, program: Path) -> None:
    """As tracefs does it: not while somebody has a buffer open."""
    if not path.exists():
        raise FileNotFoundError(path)
    if collectors_of(program):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    shutil.rmtree(path)


def make_machine(root: Path) -> Machine:
    """Make a machine below `root`."""
    (root / "tracing" / "instances").mkdir(parents=True)
    behaviour, program = root / "behaviour.json", root / "etrace_cat"
    behaviour.write_text("{}")
    program.write_text(COLLECTOR.format(python=sys.executable, behaviour=str(behaviour)))
    program.chmod(0o755)
    kernel = FakeKernel()
    modules = FakeModules(is_used=lambda: kernel.status().phase is Phase.RUNNING)

    def remove(path: Path) -> None:
        _remove_instance(path, program)

    host = Host(
        states=StateDirectory(root / "run"),
        tracefs=Tracefs(lambda: root / "tracing", _make_instance, remove),
        modules=modules,
        connect=kernel.connect,
        collector=lambda: program,
    )
    return Machine(root, kernel, modules, host)


NOBODY = Owner(65534, 65534, (65534,))


def plan(directory: Path, **more: object) -> beginning.Plan:
    values: dict[str, object] = {
        "owner": myself(),
        "root_process": process.identify(os.getpid()),
    } | more
    return beginning.Plan(directory, **values)  # type: ignore[arg-type]


def begin(machine: Machine, directory: Path, **more: object) -> list[str]:
    return begun(machine, directory, **more)[1]


def begun(machine: Machine, directory: Path, **more: object) -> tuple[Session, list[str]]:
    """Begin a session; return it and the list of its messages, which grows."""
    said: list[str] = []
    return beginning.begin(machine.host, plan(directory, **more), said.append), said


def kill(machine: Machine) -> None:
    """Kill the collector and wait until it is gone."""
    (pid,) = machine.collectors()
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def wait_for_collector(machine: Machine) -> None:
    """Wait until the collector has ended by itself."""
    state = machine.states.read()
    assert state is not None
    while state.collector.is_alive():
        time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(state.collector.pid, 0)


def ignore(_text: str) -> None:
    pass
