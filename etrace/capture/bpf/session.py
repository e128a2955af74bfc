# SPDX-License-Identifier: Apache-2.0
"""A session of BPF programs: etrace-bpf in the background, from `etrace start` to `etrace stop`.

It traces a process that already runs, or a control group. The programs are held by etrace-bpf
alone: when that ends, however it ends, nothing is left in the kernel. `/run/etrace/bpf.json` says
which process it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from etrace.capture import files
from etrace.capture.bpf.backend import PREFIX, PROGRAM, BpfBackend
from etrace.capture.kmod.collector import TELL_AFTER_S
from etrace.capture.kmod.stage import NoSessionError
from etrace.capture.kmod.state import StateDirectory
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.owner import Owner, myself, need_root
from etrace.capture.kmod.system.process import Process
from etrace.capture.options import Options
from etrace.capture.ptrace import arguments, program, read_stats
from etrace.errors import CaptureError

SCHEMA = 1
MAX_LOG_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class State:
    """What runs: `keeper` is etrace-bpf; `started` is in seconds since 1970."""

    root: str
    started: float
    trace: str
    keeper: Process


@dataclass(frozen=True, slots=True)
class Plan:
    """What to trace and where to; `options` are members of Options.

    `root` is a process, or `cgroup` the directory of a control group.
    """

    directory: Path
    owner: Owner
    root: Process | None = None
    cgroup: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The traced process or control group, as text."""
        if self.root is None:
            return f"cgroup {self.cgroup}"
        return f"process {self.root.pid} ({process.name(self.root.pid)})"

    @property
    def words(self) -> list[str]:
        """The options of etrace-bpf that name it."""
        return ["--cgroup", self.cgroup] if self.root is None else ["--pid", str(self.root.pid)]

    @property
    def place(self) -> str:
        """The directory that names in the trace begin from."""
        return "/" if self.root is None else f"/proc/{self.root.pid}/cwd"

    def is_there(self) -> bool:
        """Whether the process still runs."""
        return self.root is None or self.root.is_alive()


@dataclass(frozen=True, slots=True)
class End:
    """How a session ended: its trace, the stats (empty if etrace-bpf died) and its messages."""

    trace: Path
    stats: dict[str, Any]
    messages: tuple[str, ...]


def _file(states: StateDirectory) -> Path:
    return states.path / "bpf.json"


def _log(states: StateDirectory) -> Path:
    return states.path / "bpf.log"


def read(states: StateDirectory) -> State | None:
    """Return the session; None when there is none."""
    try:
        raw = json.loads(_file(states).read_bytes())
        if (schema := raw.pop("schema")) != SCHEMA:
            return _refuse(states, f"version {schema}")
        return State(keeper=Process(**raw.pop("keeper")), **raw)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return _refuse(states, str(error))


def _refuse(states: StateDirectory, reason: str) -> NoReturn:
    raise CaptureError(
        f"{_file(states)}: unreadable: {reason}",
        f"end the process {PROGRAM} if one runs, then remove the file",
    )


def _write(states: StateDirectory, state: State) -> None:
    temporary = states.path / "bpf.json.tmp"
    with open(states.create(temporary), "w", encoding="ascii") as stream:  # noqa: PTH123
        json.dump({"schema": SCHEMA, **dataclasses.asdict(state)}, stream)
    temporary.replace(_file(states))


def _clear(states: StateDirectory) -> None:
    for path in (_file(states), _log(states)):
        path.unlink(missing_ok=True)


def _messages(states: StateDirectory) -> tuple[str, ...]:
    try:
        with _log(states).open("rb") as stream:
            text = stream.read(MAX_LOG_BYTES).decode(errors="replace")
    except OSError:
        return ()
    return tuple(line.removeprefix(PREFIX) for line in text.splitlines())


# ---- begin


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for fd in ends:
            with contextlib.suppress(OSError):
                os.close(fd)


def begin(states: StateDirectory, plan: Plan) -> State:
    """Start a session; return when the programs record. CaptureError, and nothing has changed."""
    need_root()
    if (obstacle := BpfBackend().obstacle()) is not None:
        raise CaptureError(obstacle.reason, obstacle.hint)
    with states.locked():
        state = read(states)
        if state is not None and state.keeper.is_alive():
            raise CaptureError(
                f"a BPF session is already running: {state.root}, {PROGRAM} {state.keeper.pid}",
                "see `etrace status`; end it: sudo etrace stop --backend bpf",
            )
        _clear(states)
        return _begin(states, plan)


def _begin(states: StateDirectory, plan: Plan) -> State:
    owner = None if plan.owner == myself() else plan.owner
    trace, folder = files.prepare(os.fspath(plan.directory), owner)
    marks = files.open_marks(owner)
    options = Options(
        trace, f"{trace}.stats", folder=folder, marks=marks, owner=owner, **plan.options
    )
    kept = [folder] if marks is None else [folder, marks]
    with _pipe() as (reader, writer), states.created(_log(states)) as log:
        try:
            keeper = subprocess.Popen(
                [program(PROGRAM), *arguments(options, writer), *plan.words],
                pass_fds=(*kept, writer), cwd=plan.place,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=log,
            )  # fmt: skip
        except OSError as error:
            raise CaptureError(f"{PROGRAM}: {error.strerror}", "did the process end?") from error
        finally:
            for fd in kept:
                os.close(fd)
        os.close(writer)
        try:
            runs = bool(os.read(reader, 1))  # the first line of progress
            identity = process.identify(keeper.pid)
            if runs and identity is not None and plan.is_there():
                state = State(
                    plan.name, time.time(), str(Path(trace).absolute()), identity,
                )  # fmt: skip
                _write(states, state)
                return state
        except BaseException:
            _give_up(keeper)
            raise
    _give_up(keeper)
    messages = _messages(states)
    _clear(states)
    raise CaptureError(
        messages[0] if messages else f"{PROGRAM} ended with status {keeper.returncode}",
        "etrace doctor names what BPF programs need",
    )


def _give_up(keeper: subprocess.Popen[bytes]) -> None:
    keeper.terminate()
    keeper.wait()


# ---- end


def end(states: StateDirectory, say: Callable[[str], None]) -> End:
    """End the session: everything recorded is written. May be interrupted, and called again.

    `say` gets a message for people when that takes long.
    """
    need_root()
    with states.locked():
        state = read(states)
        if state is None:
            raise NoSessionError
        has_died = _stop(state.keeper, say)
        stats = {} if has_died else read_stats(f"{state.trace}.stats")
        messages = _messages(states)
        _clear(states)
    return End(Path(state.trace), stats, messages)


def _stop(keeper: Process, say: Callable[[str], None]) -> bool:
    """Ask etrace-bpf to end, and wait for it; return whether it had died before."""
    fd = keeper.open()
    if fd is None:
        return True
    try:
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        if select.select([fd], [], [], TELL_AFTER_S) == ([], [], []):
            say(f"{PROGRAM} ({keeper.pid}) is still writing the trace; Ctrl-C ends only the wait")
            select.select([fd], [], [])
    except ProcessLookupError:
        return True
    finally:
        os.close(fd)
    return False
