# SPDX-License-Identifier: Apache-2.0
"""A database -> BuildXL's File Access Trace File (docs/exports.md).

Processes are those of the build, threads are part of theirs. An operation is a fork, an exec, an
exit, an open, a rename, a link or a symbolic link; all in the order of time.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.imports.access_trace import model, names, side
from etrace.imports.access_trace.forms import split
from etrace.imports.access_trace.model import (
    NOT_APPLICABLE,
    AccessTrace,
    Attributes,
    Correlation,
    Operation,
    Process,
)
from etrace.nfsdb.environment import is_traced
from etrace.nfsdb.trace_time import build_end_ns
from etrace.query.rows.commands import nearest_commands
from etrace.spec.database import ACCESS, NONE, file_type

PID_MASK = (1 << 22) - 1
#: larger times are since 1970: an imported log has them; as CLOCK_MONOTONIC it would be 30 years
UNIX_NS = 10**18
#: of a upid or pid
MAX_DIGITS = 20
#: Windows' attributes of a file: directory, link, any other
DIRECTORY, REPARSE_POINT, NORMAL = 0x10, 0x400, 0x80
#: the most ticks that .NET has
LAST_TICKS = 3155378975999999999


class Change(IntEnum):
    """`kind` in the table `changes`."""

    NEW, RENAMED, LINKED, SYMLINK, GONE, FIRST_USE, EXCHANGED = range(1, 8)


class _Rank(IntEnum):
    """Order of operations with the same time."""

    FORK, EXEC, ACCESS, EXIT = range(4)


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation before it has numbers; `follows`: it is the other half of the one before."""

    time_ns: int
    rank: _Rank
    process: int
    name: bytes
    mask: int
    path: bytes
    follows: bool = False
    opened: int = NOT_APPLICABLE


def kept(image: Image) -> AccessTrace | None:
    """Return the trace from which a database was imported, None when it was not. EtraceError."""
    traces = image.attributes.get("traces")
    for path, stamp in traces.items() if isinstance(traces, dict) else ():
        if isinstance(stamp, dict):
            found = side.read(side.path_of(Path(path)), str(stamp.get("digest")))
            if found is not None:
                return found
    return None


class Export:
    """Makes the trace of one image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._executions, self._opens = image["executions"], image["opens"]
        self._leaders = self._find_leaders()
        self._rows = self._find_rows()
        self._begin_ns = self._find_begin()
        self.is_timed_by_file = self._begin_ns < UNIX_NS
        self._wall_ns = self._find_wall()
        self._changes = self._find_changes()
        self.n_line_ends = 0

    def trace(
        self, version: int, *, is_split: bool = False, root: int | None = None
    ) -> AccessTrace:
        """Return the trace of the build, or of a process (upid) and its descendants."""
        selected = self._selected(root)
        steps = [step for upid in selected for step in self._steps(upid)]
        steps.sort(key=lambda step: (step.time_ns, step.process, step.rank))
        trace = _numbered(version, list(_settled(steps)))
        trace.processes = [self._process(upid) for upid in selected]
        return split(trace, self._written().__contains__) if is_split else trace

    def upid(self, text: str) -> int:
        """Return the process that a number means: a upid, or a pid that is there once."""
        is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
        number = int(text) if is_number else -1
        if number in self._rows:
            return number
        found = [upid for upid in self._rows if upid & PID_MASK == number]
        if len(found) != 1:
            what = "is that of several processes" if found else "is not a process of the database"
            hint = ", ".join(map(str, found)) or "cas execs --details shows the upids (pid)"
            raise EtraceError(f"{text}: {what}", hint)
        return found[0]

    # ---- processes ----

    def _find_leaders(self) -> dict[int, int]:
        """Return the upid of the process of each thread."""
        upid, owners = self._executions["upid"], find_thread_owners(self._image)
        return {upid[row]: upid[owner] for row, owner in enumerate(owners) if owner != row}

    def _find_rows(self) -> dict[int, list[int]]:
        """Return the executions of each process by upid, in the order in which processes began."""
        table, rows = self._executions, dict[int, list[int]]()
        for row, upid in enumerate(table["upid"]):
            rows.setdefault(self._leaders.get(upid, upid), []).append(row)
        for found in rows.values():
            found.sort(key=lambda row: (table["start_ns"][row], row))
        return dict(sorted(rows.items(), key=lambda pair: (table["start_ns"][pair[1][0]], pair[0])))

    def _selected(self, root: int | None) -> list[int]:
        if root is None:
            return list(self._rows)
        parents = {upid: self._parent(upid) for upid in self._rows}
        inside = {root}
        for upid in self._rows:
            path = []
            at: int | None = upid
            while at is not None and at not in inside and at not in path:
                path.append(at)
                at = parents[at]
            if at in inside:
                inside.update(path)
        return [upid for upid in self._rows if upid in inside]

    def _parent(self, upid: int) -> int | None:
        row = self._executions["parent"][self._rows[upid][0]]
        if row == NONE:
            return None
        above = self._executions["upid"][row]
        return self._leaders.get(above, above)

    def _programs(self, upid: int) -> list[int]:
        """Return the executions of a process that have a program."""
        return [row for row in self._rows[upid] if self._executions["binary"][row] != NONE]

    @cached_property
    def _nearest(self) -> list[int]:
        return nearest_commands(self._executions)

    def _program(self, row: int) -> bytes:
        """Return the program of an execution; for one before any exec, its parent's."""
        if (command := self._nearest[row]) == NONE:
            return b""
        return self._one_line(self._image.path_string(self._executions["binary"][command]))

    def _process(self, upid: int) -> Process:
        table, rows = self._executions, self._rows[upid]
        programs = self._programs(upid)
        last = programs[-1] if programs else rows[0]
        strings = self._image["arguments"]["string"]
        argv = [self._image.string(strings[i]) for i in table.span("argv.start", last)]
        end = max(table["start_ns"][row] + table["elapsed_ns"][row] for row in rows)
        parent = self._parent(upid)
        status = self._status(upid)
        return Process(
            upid & PID_MASK, self._program(last), 0 if parent is None else parent & PID_MASK,
            self._ticks(table["start_ns"][rows[0]]), self._ticks(end),
            model.NO_EXIT_CODE if status == NONE else status, self._one_line(b" ".join(argv)),
        )  # fmt: skip

    def _status(self, upid: int) -> int:
        """Return the exit status of a process: its leader's, or that of a thread that executed."""
        table, rows = self._executions, self._rows[upid]
        programs = self._programs(upid)
        own = table["upid"][programs[-1]] if programs else upid
        known = [table["status"][row] for row in rows if table["upid"][row] == own]
        return next((status for status in reversed(known) if status != NONE), NONE)

    def _one_line(self, text: bytes) -> bytes:
        """Replace line ends, as BuildXL does on Linux."""
        if b"\n" not in text and b"\r" not in text:
            return text
        self.n_line_ends += 1
        return text.replace(b"\n", b".").replace(b"\r", b".")

    # ---- time ----

    def _find_begin(self) -> int:
        """Return the stamp at which the trace began: not later than any open allows."""
        starts = self._executions["start_ns"]
        opens = self._opens
        differences = (
            opens["open_ns"][i] - starts[opens["execution"][i]]
            for i in range(opens.n_rows)
            if opens["open_ns"][i]
        )
        return max(min(differences, default=0), 0)

    def _find_wall(self) -> int:
        """Return the time of day, ns since 1970, at which the trace began.

        Stamps are CLOCK_MONOTONIC; the file of the trace was written when its last event came.
        """
        if not self.is_timed_by_file:
            return self._begin_ns
        table = self._executions
        ends = (table["start_ns"][i] + table["elapsed_ns"][i] for i in range(table.n_rows))
        return build_end_ns(self._image) - max(ends, default=0)

    def _ticks(self, since_ns: int) -> int:
        """Return the ticks of a time since the trace began."""
        return min(max(model.ticks(self._wall_ns + since_ns), 0), LAST_TICKS)

    # ---- operations ----

    def _find_changes(self) -> dict[int, list[int]]:
        """Return the rows of `changes` of each open, in the order of time."""
        table, found = self._image["changes"], dict[int, list[int]]()
        for row, each in enumerate(table["open"]):
            if table["kind"][row] != Change.FIRST_USE:
                found.setdefault(each, []).append(row)
        return found

    def _steps(self, upid: int) -> Iterator[_Step]:
        table, rows = self._executions, self._rows[upid]
        pid = upid & PID_MASK
        starts = {row: self._begin_ns + table["start_ns"][row] for row in rows}
        parent = table["parent"][rows[0]]
        programs = self._programs(upid)
        creator = self._program(rows[0] if parent == NONE and not programs else parent)
        first = creator or self._program(programs[0] if programs else rows[0])
        yield _Step(starts[rows[0]], _Rank.FORK, pid, b"Process", names.NO_ACCESS, first)
        for row in programs:
            path = self._program(row)
            yield _Step(starts[row], _Rank.EXEC, pid, b"ProcessExec", names.NO_ACCESS, path)
        for row in rows:
            for each in table.span("opens.start", row):
                yield from self._open(pid, each)
        if self._status(upid) != NONE:
            ends = max(starts[row] + table["elapsed_ns"][row] for row in rows)
            path = self._program(programs[-1] if programs else rows[0])
            yield _Step(ends, _Rank.EXIT, pid, b"ProcessExit", names.NO_ACCESS, path)

    def _open(self, pid: int, row: int) -> Iterator[_Step]:
        """Yield the operations of one row of `opens`."""
        opens, table = self._opens, self._image["changes"]
        path = self._one_line(self._image.path_string(opens["path"][row]))
        if not path.startswith((b"/", b"\\")) and path[1:2] != b":":
            return  # a pipe, a socket
        mode, opened = opens["mode"][row], _attributes(opens["mode"][row])
        begin, is_open = opens["open_ns"][row], opens["close_ns"][row] != 0
        changes = self._changes.get(row, ())
        access = mode & ACCESS
        mask = (names.READ, names.WRITE, names.READ_WRITE, names.READ_WRITE)[access]
        news = [i for i in changes if table["kind"][i] == Change.NEW]
        if is_open and not any(table["time_ns"][i] == begin for i in news):
            name = b"WriteFile" if access else b"ReadFile"
            if not access and stat.S_ISDIR(file_type(mode)):
                name, mask = b"OpenDirectory", names.ENUMERATE
            yield _Step(begin, _Rank.ACCESS, pid, name, mask, path, opened=opened)
        for i in changes:
            at, other = table["time_ns"][i], table["name"][i]
            text = b"" if other == NONE else self._one_line(self._image.string(other))
            yield from _changed(Change(table["kind"][i]), at, pid, mask, path, text, opened)

    def _written(self) -> set[bytes]:
        """Return the paths that the build wrote."""
        opens, paths = self._opens, self._image.path_string
        rows = {opens["path"][i] for i in range(opens.n_rows) if opens["mode"][i] & ACCESS}
        return {self._one_line(paths(row)) for row in rows}

    # ---- what the format lacks ----

    def lost(self) -> list[tuple[int, str]]:
        """Return how many things of the database the format cannot carry, with their nouns."""
        image = self._image
        several = sum(len(self._programs(upid)) > 1 for upid in self._rows)
        threads = len(self._leaders)
        found = [
            (image["pipe_readers"].n_rows, "pipe link{s}"),
            (image["inherited"].n_rows, "inherited descriptor{s}"),
            (image["mounts"].n_rows, "mount{s}"),
            (image["environment"].n_rows * is_traced(image), "environment variable{s}"),
            (threads, "thread{s} (what they did is their process's)"),
            (several, "process{es} with several programs (the last one's command line is kept)"),
            (self.n_line_ends, "line end{s} in names and command lines (written as a dot)"),
        ]
        return [each for each in found if each[0]]


def _attributes(mode: int) -> int:
    kind = file_type(mode)
    if stat.S_ISDIR(kind):
        return DIRECTORY
    if stat.S_ISLNK(kind):
        return REPARSE_POINT
    return NORMAL if stat.S_ISREG(kind) else NOT_APPLICABLE


def _changed(
    kind: Change, at: int, pid: int, mask: int, path: bytes, other: bytes, opened: int
) -> Iterator[_Step]:
    """Yield the operations of a change of a file or name."""
    write, read = names.WRITE, names.READ
    if kind is Change.NEW:
        mask = names.READ_WRITE if mask == names.READ_WRITE else write
        yield _Step(at, _Rank.ACCESS, pid, b"CreateFile", mask, path, opened=opened)
    elif kind is Change.RENAMED:
        yield _Step(at, _Rank.ACCESS, pid, b"DeleteFile", write, other)
        yield _Step(at, _Rank.ACCESS, pid, b"CreateFile", write, path, follows=True, opened=opened)
    elif kind is Change.LINKED:
        yield _Step(at, _Rank.ACCESS, pid, b"CreateHardlinkSource", read, other)
        yield _Step(at, _Rank.ACCESS, pid, b"CreateHardlinkDest", write, path, follows=True)
    elif kind is Change.EXCHANGED:
        yield _Step(at, _Rank.ACCESS, pid, b"WriteFile", write, path, opened=opened)
    elif kind is Change.SYMLINK:
        yield _Step(at, _Rank.ACCESS, pid, b"CreateFile", write, path, opened=REPARSE_POINT)


def _settled(steps: Sequence[_Step]) -> Iterator[_Step]:
    """Yield the steps; a file that was used before is not created again, but written."""
    there: set[bytes] = set()
    for step in steps:
        is_old = step.name == b"CreateFile" and not step.follows and step.path in there
        yield replace(step, name=b"WriteFile") if is_old else step
        if step.name == b"DeleteFile":
            there.discard(step.path)
        elif step.rank is _Rank.ACCESS:
            there.add(step.path)


def _numbered(version: int, steps: Sequence[_Step]) -> AccessTrace:
    """Give operations, levels of access and paths their numbers."""
    trace = AccessTrace(version)
    numbers: dict[bytes, int] = {}
    for at, step in enumerate(steps):
        operation = names.OPERATIONS[step.name]
        trace.operations[operation] = step.name
        trace.accesses[step.mask] = names.access_name(step.mask)
        number = numbers.setdefault(step.path, len(numbers) + 1)
        trace.events.append(
            Operation(at, step.process, number, None, operation, step.mask, 0, False, b"")
        )
        if version > 1:
            trace.correlations.append(Correlation(at, at + 1, at if step.follows else 0))
        if version > 2:
            trace.attributes.append(Attributes(at, NOT_APPLICABLE, step.opened))
    trace.manifest = {number: path for path, number in numbers.items()}
    return trace
