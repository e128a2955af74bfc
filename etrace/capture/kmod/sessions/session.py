# SPDX-License-Identifier: Apache-2.0
"""The start of a session, and its state: begin(), look().

begin() undoes everything when a step fails or a signal comes. After that, session.json lists what
teardown.py has to undo.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etrace.capture import signals
from etrace.capture.kmod.loading import probes
from etrace.capture.kmod.sessions import collector
from etrace.capture.kmod.sessions.host import Host
from etrace.capture.kmod.sessions.state import State
from etrace.capture.kmod.sessions.teardown import (
    Check,
    Tell,
    attempt,
    never,
    refuse_when_driven,
    take_apart,
)
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import INSTANCE, Control, Option, Phase, Request, Status
from etrace.capture.kmod.system.output import PARTIAL, ZSTD_SUFFIX, Output, identity_of, open_output
from etrace.capture.kmod.system.owner import Owner, need_root
from etrace.capture.kmod.system.tracefs import Instance
from etrace.capture.session import STATS, TRACE
from etrace.errors import CaptureError

DEFAULT_BUFFER_KIB = 4096
#: by default all buffers together take at most this part of the memory
MEMORY_SHARE = 32
KIB = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What to trace (a root process or a cgroup) and where to. `driver`: see State.

    `root_name` is what to call the root, when not as it is called now. `output` replaces the
    directory; it has its INITCWD line. `check_root` raises when the root is not what it was;
    nothing of the session is written before it has returned. `hold` gets another descriptor of
    what owns the session, so that it survives its collector.
    """

    directory: Path
    owner: Owner
    root_process: process.Process | None = None
    root_name: str = ""
    cgroup: str = ""
    options: Option = Option.NONE
    zstd: bool = False
    buffer_kib: int = 0
    module: Path | None = None
    driver: process.Process | None = None
    output: Output | None = None
    check_root: Check | None = None
    hold: Callable[[int], None] | None = None

    @property
    def root_pid(self) -> int:
        """Number of the root process, 0 for a control group."""
        return 0 if self.root_process is None else self.root_process.pid

    @property
    def root(self) -> str:
        """The traced process or control group, as text."""
        if self.cgroup:
            return f"cgroup {self.cgroup}"
        return f"process {self.root_pid} ({self.root_name or process.name(self.root_pid)})"

    @property
    def trace_name(self) -> str:
        """Return the name of the finished trace."""
        return TRACE + ZSTD_SUFFIX if self.zstd else TRACE


def default_buffer_kib() -> int:
    """Return the size of each CPU's buffer when none is given."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // KIB
    return max(min(DEFAULT_BUFFER_KIB, memory // MEMORY_SHARE // (os.cpu_count() or 1)), 64)


# ---- begin


def begin(host: Host, plan: Plan, tell: Tell) -> State:
    """Start a session; return when events are recorded. When that fails, everything is undone."""
    need_root()
    with signals.deferred(again=True) as pending, host.states.locked():
        _clear_the_way(host, tell, pending.check)
        with contextlib.ExitStack() as undo:
            state = _Beginning(host, plan, tell, pending.check, undo).begin()
            undo.pop_all()
        return state


def attempt_to_load(host: Host) -> None:
    """Load the module, ask it and unload it again; CaptureError when that does not work."""
    with signals.deferred() as pending, host.states.locked(), contextlib.ExitStack() as undo:
        if not host.modules.is_loaded():
            host.modules.load(None)
            undo.callback(attempt, host.modules.unload, "the module stays loaded", _silent)
        pending.check()
        with contextlib.closing(host.connect()) as control:
            _refuse_foreign_session(control)


def _clear_the_way(host: Host, tell: Tell, check: Check) -> None:
    """Refuse while a session runs; clean up one that died."""
    state = host.states.read()
    if state is None:
        return
    if is_running(state):
        raise CaptureError(
            f"a session is already running: {state.root}, collector {state.collector.pid}, "
            f"into {state.output.directory}, since {clock(state.started)}",
            "see `etrace status`; end it: sudo etrace stop",
        )
    refuse_when_driven(state)
    tell(f"a session of {clock(state.started)} died; it is cleaned up first")
    outcome = take_apart(host, state, tell, check, {})
    tell(f"what it captured is kept: {outcome.trace}")


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The steps of begin(). Each puts what undoes it on `undo`; between them `check` may raise."""

    host: Host
    plan: Plan
    tell: Tell
    check: Check
    undo: contextlib.ExitStack

    def begin(self) -> State:
        host, plan = self.host, self.plan
        program = host.collector()
        buffer_kib = plan.buffer_kib or default_buffer_kib()
        output = plan.output or open_output(plan.directory, plan.owner)
        output.check((plan.trace_name, STATS))
        loaded = self.load_module()
        control = host.connect()
        with contextlib.closing(control):
            _refuse_foreign_session(control)
            instance = self.make_instance(buffer_kib)
            with contextlib.ExitStack() as opened:
                fds = self.open_files(output, control, opened)
                held = collector.Held(program, fds, self.source(instance))
                opened.callback(held.close)
                self.undo.callback(
                    collector.stop, held.process, host.states.progress, self.tell, never
                )
                state = State(
                    root=plan.root,
                    root_pid=plan.root_pid,
                    started=time.time(),
                    output=output,
                    trace=identity_of(fds.trace),
                    trace_name=plan.trace_name,
                    instance=instance.path.name,
                    buffer_kib=buffer_kib,
                    collector=held.process,
                    driver=plan.driver,
                    loaded_module=loaded,
                )
                host.states.write(state)
                held.release(host.states.collector_log, self.check)
            state = self.start_session(control, state)
            if plan.hold is not None:
                plan.hold(os.dup(control.fileno()))
            return state

    def load_module(self) -> bool:
        """Load the module when it is not there; whether it was loaded."""
        modules = self.host.modules
        if modules.is_loaded():
            if self.plan.module is not None:
                self.tell(f"the module is loaded already: {self.plan.module} is not used")
            return False
        modules.load(self.plan.module)
        self.undo.callback(attempt, modules.unload, "the module stays loaded", self.tell)
        self.check()
        return True

    def make_instance(self, buffer_kib: int) -> Instance:
        """Make the ftrace instance with its options."""
        instance = self.host.tracefs.instance(INSTANCE)
        if instance.exists:
            self.tell(f"{instance.path} exists without a session; it is created again")
        instance.make()
        self.undo.callback(attempt, instance.remove, f"{instance.path} stays", self.tell)
        instance.configure(buffer_kib)
        self.check()
        return instance

    def source(self, instance: Instance) -> collector.Source:
        """Return the collector's source."""
        plan = self.plan
        cwd = "" if plan.output else process.working_directory(plan.root_pid or os.getpid())
        return collector.Source(self.host.tracefs.mount(), instance.path.name, cwd, plan.zstd)

    def open_files(
        self, output: Output, control: Control, opened: contextlib.ExitStack
    ) -> collector.Descriptors:
        """Make the trace and the files of the collector."""
        states = self.host.states
        if output.left_over():
            self.tell(f"found an unfinished trace in {output.directory}; it is kept as {PARTIAL}")
        trace = output.create()
        opened.callback(os.close, trace)
        self.undo.callback(output.discard)
        self.undo.callback(states.clear)
        stats, progress, log = (
            opened.enter_context(states.created(path))
            for path in (states.collector_stats, states.progress, states.collector_log)
        )
        return collector.Descriptors(trace, stats, progress, log, control.fileno())

    def start_session(self, control: Control, state: State) -> State:
        """Start tracing; note the number of the session."""
        plan = self.plan
        request = Request(plan.root_pid, plan.cgroup, plan.options, state.instance)
        with _only_if_unchanged(state.collector, plan.check_root):
            started = control.start(request)
            self.undo.callback(_stop_again, self.host, started.session)
        if lacks := probes.told(started.missing_probes):
            self.tell(lacks)
        state = dataclasses.replace(state, session=started.session)
        self.host.states.write(state)
        if plan.root_process is not None and not plan.root_process.is_alive():
            raise CaptureError(f"{plan.root} has ended", "name what to trace: --pid PID")
        self.check()
        return state


@contextlib.contextmanager
def _only_if_unchanged(reader: process.Process, check_root: Check | None) -> Iterator[None]:
    """Inside the block the collector stands still; it reads on if `check_root` is content."""
    if check_root is None:
        yield
        return
    os.kill(reader.pid, signal.SIGSTOP)  # a child that was not waited for
    number = signal.SIGKILL
    try:
        yield
        check_root()
        number = signal.SIGCONT
    finally:
        os.kill(reader.pid, number)


def _silent(_text: str) -> None:
    """Print nothing."""


def _stop_again(host: Host, number: int) -> None:
    with contextlib.suppress(CaptureError), contextlib.closing(host.connect()) as control:
        control.stop(number)


def _refuse_foreign_session(control: Control) -> None:
    status = control.status()
    if status.phase is Phase.STARTING:
        raise CaptureError("another process is starting a session", "see `etrace status`")
    if status.phase is Phase.STOPPING:
        raise CaptureError("the last session is still being stopped", "try again in a few seconds")
    if status.phase is Phase.RUNNING:
        raise CaptureError(
            f"process {status.owner_pid} ({process.name(status.owner_pid)}) runs a session "
            "that etrace did not start",
            "end that process",
        )


# ---- look


def is_running(state: State) -> bool:
    """Whether the session's collector lives; without it the kernel has ended the session."""
    return state.collector.is_alive()


def already(host: Host) -> str:
    """Return what to tell somebody who wants a session while one runs; empty when none does."""
    state = host.states.read()
    if state is None or not (is_running(state) or state.is_driven):
        return ""
    return f"a session is already running: {state.root}, since {clock(state.started)}"


def clock(seconds: float) -> str:
    """Return a time of day with its date."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


@dataclass(frozen=True, slots=True)
class View:
    """The visible state of a session.

    `collected` are the collector's counts so far, `said` its last message.
    """

    state: State | None
    running: bool
    status: Status | None
    collected: dict[str, Any]
    said: str = ""


def look(host: Host) -> View:
    """Return the present session; needs no rights and changes nothing."""
    state = host.states.read()
    status = kernel_status(host)
    collected = collector.read_counts(host.states.progress) if state else {}
    running = state is not None and (is_running(state) or _owns(state, status))
    said = collector.last_words(host.states.collector_log) if state else ""
    return View(state, running, status, collected, said)


def _owns(state: State, status: Status | None) -> bool:
    """Whether the kernel runs this session; it knows that when processes of others are hidden."""
    if status is None or not status.has_session:
        return False
    return status.session == state.session


def kernel_status(host: Host) -> Status | None:
    """Ask the module; None when it is not loaded or does not answer."""
    if not host.modules.is_loaded():
        return None
    try:
        with contextlib.closing(host.connect()) as control:
            return control.status()
    except CaptureError:
        return None
