# SPDX-License-Identifier: Apache-2.0
"""A session of the kernel module: one state machine, from START until the machine is restored.

          begin              number noted               end
    NONE ───────► STARTING ───────────────► RUNNING ─────────► ENDING ─────────► ENDED
     ▲  ◄─────────── │                       │    ▲               it wrote all      │
     │   a failure   │ the collector dies    │    │ its driver tends it             │
     │   or signal   ▼                       ▼    │                                 │
     │               └───────────────────► BROKEN ┘                                 │
     │                 end, or the next begin │                                     │
     └────────────────────────────────────────┴─────────────────────────────────────┘
       taken apart: stop, drain, count, publish the trace, restore the machine

    stage     session.json         asked to end  collector
    NONE      missing
    STARTING  no number yet        no            alive
    RUNNING   the kernel's number  no            alive
    BROKEN    present              no            dead
    ENDING    present              yes           alive
    ENDED     present              yes           dead

Any process may die in any stage: the stage is read from session.json and the collector's process,
never remembered, so the next command goes on from there. While the collector lives, `begin` is
refused; BROKEN and ENDED are taken apart first, unless their driver lives. Only the wait for the
collector in ENDING can be interrupted; the next `end` waits again.

Who holds what:
- the lock in /run/etrace: whoever begins, ends or repairs a session, for that time;
- the socket that owns the kernel's session: the collector, and the driver (`etrace run`, etraced)
  if there is one; when the last of them closes it, the kernel ends the session;
- the trace: the collector, by a descriptor; the name `.nfsdb` comes when it is whole;
- the ftrace instance and the module: nobody; session.json lists them for whoever takes it apart.

A driver's collector that a signal killed gets a successor: the kernel records on, the buffers keep
what nobody reads, and the trace goes on after its last whole event. What the killed one had read
but not written (it sorts events) is lost, and counted. A collector that ended by itself (a full
disk, SIGTERM) gets none. Without a driver, `end` reads what the buffers still hold.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from etrace.capture import signals
from etrace.capture.backend import Progress
from etrace.capture.files import STATS, TRACE
from etrace.capture.kmod import collector, ending
from etrace.capture.kmod.ending import Ending, Evidence
from etrace.capture.kmod.state import State, StateDirectory
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import (
    INSTANCE,
    Control,
    Counter,
    Option,
    Phase,
    Request,
    Status,
)
from etrace.capture.kmod.system.module import Modules
from etrace.capture.kmod.system.output import (
    PARTIAL,
    ZSTD_SUFFIX,
    Handed,
    Output,
    identity_of,
    open_output,
)
from etrace.capture.kmod.system.owner import Owner, need_root
from etrace.capture.kmod.system.process import Process
from etrace.capture.kmod.system.tracefs import BufferCounts, Instance, Tracefs
from etrace.errors import CaptureError, EtraceError, NothingFoundError
from etrace.figures import count

DEFAULT_BUFFER_KIB = 4096
#: by default all buffers together take at most this part of the memory
MEMORY_SHARE = 32
KIB = 1024
#: for a command that looks at a session just when another one ends its own
END_PATIENCE_S, MEND_PATIENCE_S = 600.0, 60.0
#: something that kills a collector again and again kills the last one, too
MAX_SUCCESSORS = 5
#: gets messages for people
Say = Callable[[str], None]
#: raises when a signal came that ends the command
Check = Callable[[], None]


def never() -> None:
    """Check for signals that are to wait."""


def silent(_text: str) -> None:
    """Print nothing."""


# ---- what a session touches


def _connect() -> Control:
    from etrace.capture.kmod.system.netlink import NetlinkControl  # noqa: PLC0415  slow to import

    return NetlinkControl()


@dataclass(frozen=True, slots=True)
class Host:
    """Everything outside the process that a session touches; tests replace it."""

    states: StateDirectory = field(default_factory=StateDirectory)
    tracefs: Tracefs = field(default_factory=Tracefs)
    modules: Modules = field(default_factory=Modules)
    connect: Callable[[], Control] = _connect
    collector: Callable[[], Path] = collector.program


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


# ---- stages


class Stage(Enum):
    """Where a session is; see the head of this file."""

    NONE = auto()
    STARTING = auto()
    RUNNING = auto()
    BROKEN = auto()
    ENDING = auto()
    ENDED = auto()

    @property
    def is_collecting(self) -> bool:
        """Whether the collector lives; without it and a driver the kernel ends the session."""
        return self in (Stage.STARTING, Stage.RUNNING, Stage.ENDING)


def stage_of(state: State | None) -> Stage:
    """Return the stage of the session that session.json describes."""
    if state is None:
        return Stage.NONE
    alive = state.collector.is_alive()
    if state.stopping:
        return Stage.ENDING if alive else Stage.ENDED
    if not alive:
        return Stage.BROKEN
    return Stage.RUNNING if state.session else Stage.STARTING


class NoSessionError(NothingFoundError):
    """No session is running."""

    def __init__(self) -> None:
        super().__init__("no session is running", "start one: sudo etrace start")


def _refuse_when_driven(state: State) -> None:
    """Refuse a session of an `etrace run` that still lives."""
    if state.driver is not None and state.is_driven:
        raise CaptureError(
            f"the session belongs to `etrace run`, process {state.driver.pid}",
            "it ends when its command ends; root can end one of etraced: systemctl stop etraced",
        )


# ---- NONE -> STARTING -> RUNNING


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
            undo.callback(_attempt, host.modules.unload, "the module stays loaded", silent)
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
    _refuse_when_driven(state)
    say(f"a session of {clock(state.started)} died; it is cleaned up first")
    outcome = _take_apart(host, state, say, check, {})
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
            with _held(host, trace, self.source(instance), control.fileno()) as held:
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
        self.undo.callback(_attempt, modules.unload, "the module stays loaded", self.say)
        self.check()
        return True

    def make_instance(self, buffer_kib: int) -> Instance:
        """Make the ftrace instance with its options."""
        instance = self.host.tracefs.instance(INSTANCE)
        if instance.exists:
            self.say(f"{instance.path} exists without a session; it is created again")
        instance.make()
        self.undo.callback(_attempt, instance.remove, f"{instance.path} stays", self.say)
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
def _held(
    host: Host, trace: int, source: collector.Source, owner: int | None = None
) -> Iterator[collector.Held]:
    """Inside the block a collector is held that will write into `trace`, which is closed here.

    `owner` is the descriptor that it keeps open: the session's.
    """
    states = host.states
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, trace)
        stats, progress, log = (
            opened.enter_context(states.created(path))
            for path in (states.collector_stats, states.progress, states.collector_log)
        )
        keep = log if owner is None else owner
        files = collector.Descriptors(trace, stats, progress, log, keep)
        held = collector.Held(host.collector(), files, source)
    with contextlib.closing(held):
        yield held


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


# ---- RUNNING, and BROKEN -> RUNNING


@dataclass(slots=True)
class Session:
    """A session that this process began: it is run.Traced.

    `owner` is this process's descriptor of what owns the session, -1 for none.
    """

    host: Host
    state: State
    say: Say
    owner: int = -1
    prepare: Callable[[Process], None] | None = None
    n_successors: int = 0
    control: Control | None = None

    def close(self) -> None:
        """Let go: the session ends with its collector."""
        if self.owner >= 0:
            os.close(self.owner)
            self.owner = -1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """See Traced.watched."""
        with contextlib.closing(self.host.connect()) as control:
            self.control = control
            yield
        self.control = None

    def live(self) -> int:
        """See Traced.live."""
        with contextlib.suppress(CaptureError):
            return self.control.status().count(Counter.LIVE) if self.control else 0
        return 0

    def progress(self) -> Progress | None:
        """See Traced.progress."""
        return collector.progress(self.host.states.progress, self.live())

    def is_running(self) -> bool:
        """See Traced.is_running."""
        return self.state.collector.is_alive()

    def tend(self) -> None:
        """Give the session another collector if a signal has killed it."""
        status = _status_of(self.state.collector.pid) if self.owner >= 0 else None
        if status is None:
            return
        if os.WIFSIGNALED(status) and self.n_successors < MAX_SUCCESSORS:
            self.n_successors += 1
            try:
                self._repair(os.WTERMSIG(status))
            except EtraceError as error:
                self.say(f"the collector was killed, and no other one runs: {error.message}")
            else:
                return
        self.close()

    def _repair(self, number: int) -> None:
        host, state = self.host, self.state
        with host.states.locked(MEND_PATIENCE_S):
            now = host.states.read()
            if now is None or now.collector != state.collector or now.stopping:
                raise CaptureError("another process is ending the session")
            before = {key: n for key, n in _until_now(host, state).items() if type(n) is int}
            with _resumed(host, state, state.instance, self.owner) as held:
                # the state on disk does not know the descriptor of a trace
                self.state = dataclasses.replace(state, collector=held.process, before=before)
                host.states.write(self.state)
                if self.prepare is not None:
                    self.prepare(held.process)
                held.release(host.states.collector_log, never)
        self.say(
            f"the collector was killed (signal {number}); another one continues the trace, "
            "without the records that it had read but not written"
        )

    def end(self, more: dict[str, Any]) -> Ending:
        """End it; `more` goes into its stats."""
        with signals.deferred(), self.host.states.locked(END_PATIENCE_S):
            now = self.host.states.read()
            if now is None or now.collector != self.state.collector:
                raise CaptureError(
                    "another process has ended the session",
                    f"its trace is in {self.state.output.directory}",
                )
            # a descriptor of the trace is known here only, not to the file of the state
            state = dataclasses.replace(now, output=self.state.output)
            return _take_apart(self.host, state, self.say, never, more)


def _status_of(pid: int) -> int | None:
    """Return how a child ended; None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return status if ended else None


@contextlib.contextmanager
def _resumed(
    host: Host, state: State, instance: str | None, owner: int | None = None
) -> Iterator[collector.Held]:
    """Inside the block another collector is held that will continue the trace."""
    source = collector.Source(
        host.tracefs.mount(), instance, cwd="", zstd=state.is_compressed, resumes=True
    )
    with _held(host, state.output.reopen(state.trace), source, owner) as held:
        yield held


# ---- any stage -> NONE


def end(host: Host, say: Say) -> Ending:
    """End the session that `etrace start` began, or clean up one that died."""
    need_root()
    with signals.deferred() as pending, host.states.locked():
        state = host.states.read()
        if state is None:
            raise NoSessionError
        _refuse_when_driven(state)
        return _take_apart(host, state, say, pending.check, {})


def tidy(host: Host, say: Say) -> None:
    """Clean up after a session of an etraced that was killed; its caller has the trace."""
    try:
        with host.states.locked():
            state = host.states.read()
            if state is None or not isinstance(state.output, Handed):
                return
            if stage_of(state).is_collecting or state.is_driven:
                return
            began = time.strftime("%H:%M:%S", time.localtime(state.started))
            say(f"the session of {began} was cut off; it is cleaned up")
            _take_apart(host, state, say, never, {})
    except EtraceError as error:
        say(error.message)


def _take_apart(host: Host, state: State, say: Say, check: Check, more: dict[str, Any]) -> Ending:
    """Stop, drain, count, give the files their names, restore the machine: in this order.

    Only the wait for the collector can be interrupted (`check` raises): then nothing was undone.
    After it the machine is restored whatever fails, and the trace is never removed.
    """
    instance = host.tracefs.instance(state.instance)
    evidence = _gather(host, state, instance, say, check)
    with contextlib.ExitStack() as restore:
        restore.callback(host.states.clear)
        if state.loaded_module:
            restore.callback(_attempt, host.modules.unload, "the module stays loaded", say)
        restore.callback(_attempt, instance.remove, f"{instance.path} stays", say)
        return ending.conclude(state, evidence, more)


def _attempt(step: Callable[[], None], otherwise: str, say: Say) -> None:
    """Do one step of the clean-up; report when it fails, and continue."""
    try:
        step()
    except OSError as error:
        say(f"{otherwise}: {error.strerror}; is another program using it?")


def _gather(host: Host, state: State, instance: Instance, say: Say, check: Check) -> Evidence:
    """Stop the kernel and the collector; return all counts."""
    status, remark = _stop_kernel(host, state)
    collected, whole, other = _stop_collector(host, state, say, check)
    exists = instance.exists
    return Evidence(
        status=status,
        buffers=instance.counts() if exists else BufferCounts(),
        changed_options=tuple(instance.changed_options()) if exists else (),
        collected=collected,
        whole=whole,
        buffer_kib=state.buffer_kib,
        remarks=tuple(text for text in (remark, other) if text),
        n_roots=1 if state.root_pid else 0,
    )


def _stop_kernel(host: Host, state: State) -> tuple[Status | None, str]:
    """End the kernel's session if it is this one; return its counters and a remark.

    None when the counters are unknown.
    """
    if not host.modules.is_loaded():
        return None, "the module was unloaded: its counts are unknown"
    try:
        with contextlib.closing(host.connect()) as control:
            status = control.status()
            if status.has_session and state.session in (0, status.session):
                return _stop_or_see(control, status.session), ""
    except CaptureError as error:  # the session ends with its collector then
        return None, f"the kernel's counts are unknown: {error.message}"
    if state.session == 0:  # `etrace start` was killed before it had asked for a session
        return ending.NOTHING, ""
    if status.session != state.session:
        return None, "another session ran since: the kernel's counts are unknown"
    return status, ""


def _stop_or_see(control: Control, session: int) -> Status:
    """Stop the session; when it has ended this very moment because its collector died, see how."""
    try:
        return control.stop(session)
    except CaptureError:
        return control.status()


def _stop_collector(
    host: Host, state: State, say: Say, check: Check
) -> tuple[dict[str, Any], bool, str]:
    """Let the collector end; return its counts, whether it ended as asked, and a remark."""
    states = host.states
    stage = stage_of(state)
    if stage in (Stage.STARTING, Stage.RUNNING):
        states.write(dataclasses.replace(state, stopping=True))
    ended = collector.stop(state.collector, states.progress, say, check, again=state.stopping)
    collected = collector.read_counts(states.collector_stats)
    if stage is not Stage.BROKEN and ended and collected:
        return ending.joined(state.before, collected), True, ""
    said = collector.last_words(states.collector_log)
    if ended:
        collected, remark = _rescue(host, state)
    else:
        collected = _until_now(host, state)
        remark = "the collector made no progress and was killed"
    return collected, False, f"{remark}{'; it said: ' + said if said else ''}"


def _rescue(host: Host, state: State) -> tuple[dict[str, Any], str]:
    """Read what a dead collector left in the buffers; return the counts of both and a message.

    Without buffers the trace is only cut after what is whole.
    """
    before, states = _until_now(host, state), host.states
    is_there = host.tracefs.instance(state.instance).exists
    try:
        with _resumed(host, state, state.instance if is_there else None) as held:
            held.release(states.collector_log, never)
            collector.stop(held.process, states.progress, silent, never)
    except CaptureError as error:
        return (
            before,
            f"the collector died, and its remaining records were not read: {error.message}",
        )
    if not is_there:
        return before, "the collector died"
    after = collector.read_counts(states.collector_stats)
    return ending.joined(before, after), (
        f"the collector died; recovered {count(after.get('records', 0), 'record')} that it had not "
        "read; those that it had read but not written are missing"
    )


def _until_now(host: Host, state: State) -> dict[str, Any]:
    """Return what has reached the trace, by the last counts of all its collectors."""
    counts = collector.read_counts(host.states.progress)
    records = counts.get("written_records", counts.get("records", 0))
    return ending.joined(state.before, {**counts, "records": records})


# ---- looking


def already(host: Host) -> str:
    """Return the message for somebody who wants a session while one runs; empty without one."""
    state = host.states.read()
    if state is None or not (stage_of(state).is_collecting or state.is_driven):
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
    status = _kernel_status(host)
    if state is None:
        return View(None, False, status, {})
    # the kernel knows that it runs when processes of others are hidden
    owns = status is not None and status.has_session and status.session == state.session
    return View(
        state,
        stage_of(state).is_collecting or owns,
        status,
        collector.read_counts(host.states.progress),
        collector.last_words(host.states.collector_log),
    )


def _kernel_status(host: Host) -> Status | None:
    """Ask the module; None when it is not loaded or does not answer."""
    if not host.modules.is_loaded():
        return None
    try:
        with contextlib.closing(host.connect()) as control:
            return control.status()
    except CaptureError:
        return None
