# SPDX-License-Identifier: Apache-2.0
"""Requests to the kernel module and its replies: kmod/include/etrace/control.h in Python.

The numbers are those of the header; a test reads the header and compares. How they travel is
netlink.py's matter, so that everything else works on any `Control`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import reduce
from operator import or_
from typing import Protocol

from etrace.capture.options import Options

FAMILY = "etrace"
VERSION = 1
INSTANCE = "etrace"


class Command(IntEnum):
    """enum etrace_command."""

    UNSPEC = 0
    START = 1
    STOP = 2
    STATUS = 3
    NOTIFY = 4


class Attribute(IntEnum):
    """enum etrace_attribute."""

    UNSPEC = 0
    PAD = 1
    ROOT_PID = 2
    CGROUP = 3
    OPTIONS = 4
    INSTANCE = 5
    SESSION = 6
    ROOT_UPID = 7
    STATE = 8
    NOTICE = 9
    COUNTERS = 10
    MISSING_PROBE = 11
    STARTED_NS = 12
    OWNER_PID = 13


class Phase(IntEnum):
    """enum etrace_state."""

    IDLE = 0
    RUNNING = 1
    STOPPED = 2
    STOPPING = 3
    STARTING = 4


class Option(IntFlag):
    """ETRACE_OPTION_*."""

    NONE = 0
    THREAD_NAMES = 0x1
    ENVIRONMENT = 0x2
    MOUNTS = 0x4
    ISOLATE = 0x8
    OPEN_ONCE = 0x10
    DESCENDANTS = 0x20
    UNPRIVILEGED = 0x40
    USAGE = 0x80


#: what users may have recorded: the word for it, a field of the capture's options -> the option
RECORDED = {
    "env": Option.ENVIRONMENT,
    "mounts": Option.MOUNTS,
    "thread-names": Option.THREAD_NAMES,
    "usage": Option.USAGE,
}


def words_of(options: Options) -> tuple[str, ...]:
    """Return which of RECORDED the options of a capture ask for."""
    return tuple(word for word in RECORDED if getattr(options, word.replace("-", "_")))


def options_of(words: Iterable[str]) -> Option:
    """Return the options of these words of RECORDED."""
    return reduce(or_, (RECORDED[word] for word in words), Option.NONE)


class Counter(IntEnum):
    """enum etrace_counter."""

    EVENTS = 0
    RECORDS = 1
    LOST_EVENTS = 2
    LOST_RECORDS = 3
    LIVE = 4
    TASKS = 5
    UNTRACKED = 6
    UNREAD_STRINGS = 7
    UNRESOLVED_PATHS = 8
    RACES = 9
    NO_MEMORY = 10
    IO_URING = 11
    PASSED_FDS = 12
    NEW_MOUNT_API = 13
    FOREIGN_ROOT = 14
    SUPPRESSED_OPENS = 15
    MISSED_PROBES = 16
    NOT_IN_MEMORY = 17
    PRIVILEGED = 18


@dataclass(frozen=True, slots=True)
class Request:
    """The request of START: one root process or one cgroup (a path below the cgroup2 mount)."""

    root_pid: int = 0
    cgroup: str = ""
    options: Option = Option.NONE
    instance: str = INSTANCE


@dataclass(frozen=True, slots=True)
class Started:
    """A running session, and the functions that the module could not probe."""

    session: int
    missing_probes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """The reply of the module; counters are those of the running or the last session."""

    phase: Phase
    session: int = 0
    root_pid: int = 0
    owner_pid: int = 0
    started_ns: int = 0
    options: Option = Option.NONE
    counters: Mapping[Counter, int] = field(default_factory=dict)
    missing_probes: tuple[str, ...] = ()

    @property
    def has_session(self) -> bool:
        """Whether a session runs that can be stopped, or that is being stopped."""
        return self.phase in (Phase.RUNNING, Phase.STOPPING)

    def count(self, counter: Counter) -> int:
        """Return a counter, 0 when the module does not have it."""
        return self.counters.get(counter, 0)

    def named_counters(self) -> dict[str, int]:
        """Return the counters by their names in lower case, as stats and JSON show them."""
        return {c.name.lower(): self.count(c) for c in Counter}


class Control(Protocol):
    """A connection to the module; the session ends when its last descriptor is closed."""

    def start(self, request: Request) -> Started:
        """Start a session. CaptureError with the reason."""

    def stop(self, session: int) -> Status:
        """End that session after its last record was committed; return its counters.

        It may be ending already.
        """

    def status(self) -> Status:
        """Return what runs, or what ran last."""

    def fileno(self) -> int:
        """Return the descriptor that owns the session."""

    def close(self) -> None:
        """Close it here."""
