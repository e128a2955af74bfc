# SPDX-License-Identifier: Apache-2.0
"""Small values that entries are described with."""

from __future__ import annotations

from typing import NamedTuple


class Eid(NamedTuple):
    """An execution by name: `database[entry.eid]` finds it again. (-1, 0): none."""

    pid: int
    index: int  # type: ignore[assignment]  # shadows tuple.index, as in Samsung CAS


class Cid(NamedTuple):
    """A child by its upid, and the flags of the clone(2) that made it."""

    pid: int
    flags: int


class CpuTime(NamedTuple):
    """From `timestamp` (ns since the trace began) an execution ran on `cpu`."""

    cpu: int
    timestamp: int


class Usage(NamedTuple):
    """What an execution used; None where it is not known. Children are not included."""

    user_ns: int | None
    system_ns: int | None
    max_rss_bytes: int | None
    rchar_bytes: int | None
    wchar_bytes: int | None
    n_voluntary_switches: int | None
    n_forced_switches: int | None


class Inherited(NamedTuple):
    """A file that an execution began with: descriptor, resolved path, access (0, 1 or 2)."""

    descriptor: int
    path: str
    mode: int


class Definition(NamedTuple):
    """A macro of the command line: -D gives it a value ("1" when it names none), -U "" ."""

    name: str
    value: str
