# SPDX-License-Identifier: Apache-2.0
"""The beginning of a session, NONE to RUNNING: what to trace, and steps that can be undone."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from etrace.capture import signals
from etrace.capture.files import STATS, TRACE
from etrace.capture.kmod import collector, ending
from etrace.capture.kmod.host import Check, Host, Say, hold_collector, never, silent
from etrace.capture.kmod.session import Session
from etrace.capture.kmod.stage import clock, refuse_when_driven, stage_of
from etrace.capture.kmod.state import State
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import INSTANCE, Control, Option, Phase, Request
from etrace.capture.kmod.system.output import (
    PARTIAL,
    ZSTD_SUFFIX,
    Output,
    identity_of,
    open_output,
)
from etrace.capture.kmod.system.owner import Owner, need_root
from etrace.capture.kmod.system.process import Process
from etrace.capture.kmod.system.tracefs import Instance
from etrace.capture.kmod.teardown import attempt, take_apart
from etrace.errors import CaptureError

DEFAULT_BUFFER_KIB = 4096
#: by default all buffers together take at most this part of the memory
MEMORY_SHARE = 32
KIB = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What to trace (a root process or a cgroup) and where to.

    `root_name` is what to call the root, when not as it is called now. `output` replaces the
    directory; it has its INITCWD line. `check_root` raises when the root is not what it was;
    nothing of the session is written before it has returned. `driver` is the process that will end
    the session: this one, which then holds it. `prepare` gets each collector before it reads.
    """

    directory: Path
    owner: Owner
    root_process: Process | None = None
    root_name: str = ""
    cgroup: str = ""
    options: Option = Option.NONE
    zstd: bool = False
    buffer_kib: int = 0
    module: Path | None = None
    driver: Process | None = None
    output: Output | None = None
    check_root: Check | None = None
    prepare: Callable[[Process], None] | None = None

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


def begin(host: Host, plan: Plan, say: Say) -> Session:
    """Start a session; return when events are recorded. When that fails, everything is undone."""
    need_root()
    with signals.deferred(again=True) as pending, host.states.locked():
        _clear_the_way(host, say, pending.check)
        with contextlib.ExitStack() as undo:
            session = _Beginning(host, plan, say, pending.check, undo).begin()
            undo.pop_all()
        return session


def attempt_to_load(host: Host) -> None:
    """Load the module, ask it and unload it again; CaptureError when that does not work."""
    with signals.deferred() as pending, host.states.locked(), contextlib.ExitStack() as undo:
        if not host.modules.is_loaded():
            host.modules.load(None)
            undo.callback(attempt, host.modules.unload, "the module stays loaded", silent)
        pending.check()
        with contextlib.closing(host.connect()) as control:
            _refuse_foreign_session(control)


def _clear_the_way(host: Host, say: Say, check: Check) -> None:
    """Refuse while a session runs; take one apart that died."""
    state = host.states.read()
    if state is None:
        return
    if stage_of(state).is_collecting:
        raise CaptureError(
            f"a session is already running: {state.root}, collector {state.collector.pid}, "
            f"into {state.output.directory}, since {clock(state.started)}",
            "see `etrace status`; end it: sudo etrace stop",
        )
    refuse_when_driven(state)
    say(f"a session of {clock(state.started)} died; it is cleaned up first")
    outcome = take_apart(host, state, say, check, {})
    say(f"what it captured is kept: {outcome.trace}")


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The steps of begin(). Each puts what undoes it on `undo`; between them `check` may raise."""

    host: Host
    plan: Plan
    say: Say
    check: Check
    undo: contextlib.ExitStack

    def begin(self) -> Session:
        host, plan = self.host, self.plan
        host.collector()  # CaptureError when it is missing, before anything is changed
        buffer_kib = plan.buffer_kib or default_buffer_kib()
        output = plan.output or open_output(plan.directory, plan.owner)
        output.check((plan.trace_name, STATS))
        loaded = self.load_module()
        with contextlib.closing(host.connect()) as control:
            _refuse_foreign_session(control)
            instance = self.make_instance(buffer_kib)
            trace = self.make_trace(output)
            identity = identity_of(trace)
            with hold_collector(host, trace, self.source(instance), control.fileno()) as held:
                self.undo.callback(
                    collector.stop, held.process, host.states.progress, self.say, never
                )
                state = State(
                    root=plan.root,
                    root_pid=plan.root_pid,
                    started=time.time(),
                    output=output,
                    trace=identity,
                    trace_name=plan.trace_name,
                    instance=instance.path.name,
                    buffer_kib=buffer_kib,
                    collector=held.process,
                    driver=plan.driver,
                    loaded_module=loaded,
                )
                host.states.write(state)
                if plan.prepare is not None:
                    plan.prepare(held.process)
                held.release(host.states.collector_log, self.check)
            state = self.start_session(control, state)
            owner = -1 if plan.driver is None else os.dup(control.fileno())
            return Session(host, state, self.say, owner, plan.prepare)

    def load_module(self) -> bool:
        """Load the module when it is not there; return whether it was loaded."""
        modules = self.host.modules
        if modules.is_loaded():
            if self.plan.module is not None:
                self.say(f"the module is loaded already: {self.plan.module} is not used")
            return False
        modules.load(self.plan.module)
        self.undo.callback(attempt, modules.unload, "the module stays loaded", self.say)
        self.check()
        return True

    def make_instance(self, buffer_kib: int) -> Instance:
        """Make the ftrace instance with its options."""
        instance = self.host.tracefs.instance(INSTANCE)
        if instance.exists:
            self.say(f"{instance.path} exists without a session; it is created again")
        instance.make()
        self.undo.callback(attempt, instance.remove, f"{instance.path} stays", self.say)
        instance.configure(buffer_kib)
        self.check()
        return instance

    def make_trace(self, output: Output) -> int:
        """Make the file of the trace; return its descriptor."""
        if output.left_over():
            self.say(f"found an unfinished trace in {output.directory}; it is kept as {PARTIAL}")
        trace = output.create()
        self.undo.callback(output.discard)
        self.undo.callback(self.host.states.clear)
        return trace

    def source(self, instance: Instance) -> collector.Source:
        """Return the collector's source."""
        plan = self.plan
        cwd = "" if plan.output else process.working_directory(plan.root_pid or os.getpid())
        return collector.Source(self.host.tracefs.mount(), instance.path.name, cwd, plan.zstd)

    def start_session(self, control: Control, state: State) -> State:
        """Start tracing; note the number of the session."""
        plan = self.plan
        request = Request(plan.root_pid, plan.cgroup, plan.options, state.instance)
        with _only_if_unchanged(state.collector, plan.check_root):
            started = control.start(request)
            self.undo.callback(_stop_again, self.host, started.session)
        if lacks := ending.describe_missing(started.missing_probes):
            self.say(lacks)
        state = dataclasses.replace(state, session=started.session)
        self.host.states.write(state)
        if plan.root_process is not None and not plan.root_process.is_alive():
            raise CaptureError(f"{plan.root} has ended", "name what to trace: --pid PID")
        self.check()
        return state


@contextlib.contextmanager
def _only_if_unchanged(reader: Process, check_root: Check | None) -> Iterator[None]:
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
