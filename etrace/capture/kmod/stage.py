# SPDX-License-Identifier: Apache-2.0
"""The stage that a session is in, and what `etrace status` shows of it; nothing is changed."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from etrace.capture.kmod import collector
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.state import State
from etrace.capture.kmod.system.control import Status
from etrace.errors import CaptureError, NothingFoundError


class Stage(Enum):
    """Where a session is; see the head of session.py."""

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


def refuse_when_driven(state: State) -> None:
    """Refuse a session of an `etrace run` that still lives."""
    if state.driver is not None and state.is_driven:
        raise CaptureError(
            f"the session belongs to `etrace run`, process {state.driver.pid}",
            "it ends when its command ends; root can end one of etraced: systemctl stop etraced",
        )


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
