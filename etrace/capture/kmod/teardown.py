# SPDX-License-Identifier: Apache-2.0
"""The end of a session, any stage to NONE: stop, drain, count, publish the trace, restore."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from typing import Any

from etrace.capture import signals
from etrace.capture.kmod import collector, ending
from etrace.capture.kmod.ending import Ending, Evidence
from etrace.capture.kmod.host import (
    Check,
    Host,
    Say,
    counts_until_now,
    never,
    resume_collector,
    silent,
)
from etrace.capture.kmod.stage import NoSessionError, Stage, refuse_when_driven, stage_of
from etrace.capture.kmod.state import State
from etrace.capture.kmod.system.control import Control, Status
from etrace.capture.kmod.system.output import Handed
from etrace.capture.kmod.system.owner import need_root
from etrace.capture.kmod.system.tracefs import BufferCounts, Instance
from etrace.errors import CaptureError, EtraceError
from etrace.figures import count


def end(host: Host, say: Say) -> Ending:
    """End the session that `etrace start` began, or clean up one that died."""
    need_root()
    with signals.deferred() as pending, host.states.locked():
        state = host.states.read()
        if state is None:
            raise NoSessionError
        refuse_when_driven(state)
        return take_apart(host, state, say, pending.check, {})


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
            take_apart(host, state, say, never, {})
    except EtraceError as error:
        say(error.message)


def take_apart(host: Host, state: State, say: Say, check: Check, more: dict[str, Any]) -> Ending:
    """Stop, drain, count, give the files their names, restore the machine: in this order.

    Only the wait for the collector can be interrupted (`check` raises): then nothing was undone.
    After it the machine is restored whatever fails, and the trace is never removed.
    """
    instance = host.tracefs.instance(state.instance)
    evidence = _gather(host, state, instance, say, check)
    with contextlib.ExitStack() as restore:
        restore.callback(host.states.clear)
        if state.loaded_module:
            restore.callback(attempt, host.modules.unload, "the module stays loaded", say)
        restore.callback(attempt, instance.remove, f"{instance.path} stays", say)
        return ending.conclude(state, evidence, more)


def attempt(step: Callable[[], None], otherwise: str, say: Say) -> None:
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
        collected = counts_until_now(host, state)
        remark = "the collector made no progress and was killed"
    return collected, False, f"{remark}{'; it said: ' + said if said else ''}"


def _rescue(host: Host, state: State) -> tuple[dict[str, Any], str]:
    """Read what a dead collector left in the buffers; return the counts of both and a message.

    Without buffers the trace is only cut after what is whole.
    """
    before, states = counts_until_now(host, state), host.states
    is_there = host.tracefs.instance(state.instance).exists
    try:
        with resume_collector(host, state, state.instance if is_there else None) as held:
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
