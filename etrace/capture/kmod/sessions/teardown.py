# SPDX-License-Identifier: Apache-2.0
"""The end of a session: undo every change that session.json lists.

It works in whichever process and after whatever has died in between.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from typing import Any

from etrace.capture import signals
from etrace.capture.kmod.sessions import collector, ending
from etrace.capture.kmod.sessions.ending import Ending, Evidence
from etrace.capture.kmod.sessions.host import Host
from etrace.capture.kmod.sessions.rescue import joined, rescue, until_now
from etrace.capture.kmod.sessions.state import State
from etrace.capture.kmod.system.control import Control, Status
from etrace.capture.kmod.system.owner import need_root
from etrace.capture.kmod.system.tracefs import BufferCounts, Instance
from etrace.errors import CaptureError, EtraceError
from etrace.figures import agree

#: for a command that looks at a session just when another one ends its own
PATIENCE_S = 600.0
#: gets messages for people while something takes its time
Tell = Callable[[str], None]
#: raises when a signal came that ends the command
Check = Callable[[], None]


class NoSessionError(EtraceError):
    """No session is running."""

    def __init__(self) -> None:
        super().__init__("no session is running", "start one: sudo etrace start")


def never() -> None:
    """Check for signals that are to wait."""


def end(host: Host, tell: Tell) -> Ending:
    """End the session that `etrace start` began, or clean up one that died."""
    need_root()
    with signals.deferred() as pending, host.states.locked():
        state = host.states.read()
        if state is None:
            raise NoSessionError
        refuse_when_driven(state)
        return take_apart(host, state, tell, pending.check, {})


def end_own(host: Host, state: State, tell: Tell, more: dict[str, Any]) -> Ending:
    """End the session that this process began; `more` goes into its stats."""
    with signals.deferred(), host.states.locked(PATIENCE_S):
        now = host.states.read()
        if now is None or now.collector != state.collector:
            raise CaptureError(
                "another process has ended the session",
                f"its trace is in {state.output.directory}",
            )
        # a descriptor of the trace is known here only, not to the file of the state
        return take_apart(host, dataclasses.replace(now, output=state.output), tell, never, more)


def refuse_when_driven(state: State) -> None:
    """Refuse a session of an `etrace run` that still lives."""
    if state.driver is not None and state.is_driven:
        raise CaptureError(
            f"the session belongs to `etrace run`, process {state.driver.pid}",
            "it ends when its command ends; root can end one of etraced: systemctl stop etraced",
        )


def take_apart(host: Host, state: State, tell: Tell, check: Check, more: dict[str, Any]) -> Ending:
    """Stop, drain, count, give the files their names, restore the machine: in this order.

    Only the wait for the collector can be interrupted (`check` raises): then nothing was undone,
    and the next command goes on from there. After it the machine is restored whatever fails, and
    the trace is never removed.
    """
    instance = host.tracefs.instance(state.instance)
    evidence = _gather(host, state, instance, tell, check)
    with contextlib.ExitStack() as restore:
        restore.callback(host.states.clear)
        if state.loaded_module:
            restore.callback(attempt, host.modules.unload, "the module stays loaded", tell)
        restore.callback(attempt, instance.remove, f"{instance.path} stays", tell)
        return _publish(state, evidence, more)


def attempt(step: Callable[[], None], otherwise: str, tell: Tell) -> None:
    """Do one step of the clean-up; report when it fails, and continue."""
    try:
        step()
    except OSError as error:
        tell(f"{otherwise}: {error.strerror}; is another program using it?")


def _gather(host: Host, state: State, instance: Instance, tell: Tell, check: Check) -> Evidence:
    """Stop the kernel and the collector; return all counts."""
    status, remarks = _stop_kernel(host, state)
    collected, whole, remark = _stop_collector(host, state, tell, check)
    exists = instance.exists
    return Evidence(
        status=status,
        buffers=instance.counts() if exists else BufferCounts(),
        changed_options=tuple(instance.changed_options()) if exists else (),
        collected=collected,
        whole=whole,
        buffer_kib=state.buffer_kib,
        remarks=(*remarks, remark) if remark else tuple(remarks),
        n_roots=1 if state.root_pid else 0,
    )


def _stop_collector(
    host: Host, state: State, tell: Tell, check: Check
) -> tuple[dict[str, Any], bool, str]:
    """Let the collector end; return its counts, whether it ended in its own time, and a remark.

    A collector that an interrupted `stop` ended also counts as having ended by itself.
    """
    states = host.states
    expected = state.stopping or state.collector.is_alive()
    if expected and not state.stopping:
        states.write(dataclasses.replace(state, stopping=True))
    ended = collector.stop(state.collector, states.progress, tell, check, again=state.stopping)
    collected = collector.read_counts(states.collector_stats)
    if expected and ended and collected:
        return joined(state.before, collected), True, ""
    said = collector.last_words(states.collector_log)
    remark = "the collector made no progress and was killed"
    if ended:
        collected, remark = rescue(host, state)
    else:
        collected = until_now(host, state)
    return collected, False, f"{remark}{'; it said: ' + said if said else ''}"


def _stop_kernel(host: Host, state: State) -> tuple[Status | None, list[str]]:
    """End the kernel's session if it is this one; return its counters and a remark.

    None when the counters are unknown.
    """
    if not host.modules.is_loaded():
        return None, ["the module was unloaded: its counts are unknown"]
    try:
        with contextlib.closing(host.connect()) as control:
            status = control.status()
            if status.has_session and state.session in (0, status.session):
                return _stop_or_see(control, status.session), []
    except CaptureError as error:  # the session ends with its collector then
        return None, [f"the kernel's counts are unknown: {error.message}"]
    if state.session == 0:  # `etrace start` was killed before it had asked for a session
        return ending.NOTHING, []
    if status.session != state.session:
        return None, ["another session ran since: the kernel's counts are unknown"]
    return status, []


def _stop_or_see(control: Control, session: int) -> Status:
    """Stop the session; when it has ended this very moment because its collector died, see how."""
    try:
        return control.stop(session)
    except CaptureError:
        return control.status()


def _publish(state: State, evidence: Evidence, more: dict[str, Any]) -> Ending:
    output, losses = state.output, ending.losses(evidence)
    stats = ending.stats(evidence, {"root": state.root, "started": state.started, **more})
    warnings = ending.warnings(evidence)
    if not losses and _is_empty(stats, has_command=bool(more)):
        return _discard(state, stats, warnings)
    if losses:
        warnings = (*warnings, *_mark(state, sum(loss.n for loss in losses)))
    try:
        aside = output.publish(state.trace_name, state.trace)
    except CaptureError as error:
        lost = (
            f"; {agree(sum(loss.n for loss in losses), 'event{s} {is|are} lost')}" if losses else ""
        )
        raise CaptureError(
            f"the trace could not be renamed: {error.message}{lost}",
            f"the captured trace is in {output.capturing}, if it still exists: rename it",
        ) from error
    try:
        output.write_stats(json.dumps(stats).encode("ascii") + b"\n")
    except CaptureError as error:
        warnings = (*warnings, f"the stats could not be written: {error.message}")
    return Ending(
        trace=output.directory / state.trace_name,
        aside=aside,
        stats=stats,
        losses=losses,
        warnings=warnings,
        hint=ending.hint(evidence),
    )


def _is_empty(stats: dict[str, Any], *, has_command: bool) -> bool:
    """Whether nothing was traced: no event, or of a command that could not be executed its end."""
    return not stats.get("executions" if has_command else "events", 1)


def _discard(state: State, stats: dict[str, Any], warnings: tuple[str, ...]) -> Ending:
    """Remove an empty trace, so that it replaces no older one."""
    try:
        state.output.discard()
    except CaptureError as error:
        warnings = (*warnings, f"{error.message}: an empty trace remains")
    trace = state.output.directory / state.trace_name
    return Ending(trace, False, stats, (), warnings, published=False)


def _mark(state: State, lost: int) -> tuple[str, ...]:
    """Note the loss in the trace for the parser; return the reason if that failed."""
    line = ending.mark(lost)
    try:
        state.output.append(state.trace, ending.zstd_frame(line) if state.is_compressed else line)
    except CaptureError as error:
        return (f"the loss could not be noted in the trace: {error.message}",)
    return ()
