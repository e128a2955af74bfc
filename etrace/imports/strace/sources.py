# SPDX-License-Identifier: Apache-2.0
"""Files of strace -> their lines in order, those of `-ff` (one for each process) merged by time."""

from __future__ import annotations

import contextlib
import glob
import heapq
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from etrace.errors import EtraceError
from etrace.imports.files import MAX_LINE_BYTES, lines_of
from etrace.imports.strace.lines import DAY_NS, PID_MAX, Kind, Line, parse

#: where times begin that have no date; a line without time comes so much later than the one before
BEGIN_NS = 10**9
STEP_NS = 1000
#: stamps have 63 bits; nothing beyond is a time
LAST_NS = (1 << 62) - 1

NO_TIMES = "times: the order of the lines is kept, one microsecond apart; record with -ttt"
NO_DATE = "the date: times begin at the first line's time of day; record with -ttt"
NO_BEGIN = "when the build began: times count from the first line; record with -ttt"
SECONDS = "fractions of seconds; record with -ttt"


class Clock:
    """The times of one file. `lacks` gets what they lack."""

    def __init__(self, offset_ns: int, lacks: set[str]) -> None:
        self._offset_ns = offset_ns
        self._lacks = lacks
        self._last_ns = BEGIN_NS
        self._days_ns = 0
        self._of_day: int | None = None

    def stamp(self, line: Line) -> int:
        """Return the time of a line."""
        if line.time is None:
            self._lacks.add(NO_TIMES)
            self._last_ns += STEP_NS
        elif line.is_relative:
            self._lacks.add(NO_BEGIN)
            self._last_ns += line.time
        elif line.is_of_day:
            self._lacks.add(NO_DATE)
            self._last_ns = BEGIN_NS + self._day(line.time)
        else:
            self._last_ns = max(line.time - self._offset_ns, 0)
        self._last_ns = min(self._last_ns, LAST_NS)
        return self._last_ns

    def _day(self, time: int) -> int:
        if self._of_day is not None and time < self._of_day - DAY_NS // 2:
            self._days_ns += DAY_NS
        self._of_day = time
        return self._days_ns + time


STDIN = "-"
HINT = "name a file that strace -o wrote, and that you can read"
#: descriptors that are open beside those of logs
SPARE_FILES = 64
#: of a log, in which its first working directory is looked for
HEAD_BYTES = 1 << 20
_ATTACHED = re.compile(rb"(.*?)(?:strace: )?Process (\d{1,20}) attached", re.DOTALL)
_FDCWD = re.compile(rb"(?:AT_FDCWD|-100)(?: /\* AT_FDCWD \*/)?<([^<>]*)>")
_CHDIR = re.compile(rb"\bf?chdir\(")
_FORKED = re.compile(rb"\b(?:v?fork|clone[23]?)\(.*= (\d{1,20})(?:<[^>]*>)?(?: <[\d.]+>)?$")


@dataclass(slots=True)
class Reading:
    """What was read that is not an event; `bad` is the first line that is not strace's."""

    announced: set[int] = field(default_factory=set)
    lacks: set[str] = field(default_factory=set)
    n_bytes: int = 0
    n_bad: int = 0
    bad: str = ""

    def spoil(self, where: str) -> None:
        """Count a line that could not be used."""
        self.n_bad += 1
        self.bad = self.bad or where


@dataclass(frozen=True, slots=True)
class Stamped:
    """A line with its time and place."""

    line: Line
    time_ns: int
    where: str


class Log:
    """One file of strace. `pid` is that of its name (-ff), else 0.

    Without a stream the file is open only while its lines are read: -ff makes one a process.
    """

    def __init__(self, name: str, stream: BinaryIO | None, pid: int, clock: Clock) -> None:
        self.name, self.pid = name, pid
        self._stream, self._clock = stream, clock

    def lines(self, reading: Reading) -> Iterator[Stamped]:
        """Yield the lines of strace in the file."""
        with contextlib.ExitStack() as stack:
            stream = self._stream or stack.enter_context(open_log(self.name))
            yield from self._stamped(self._joined(stream, reading), reading)

    def _stamped(self, lines: Iterable[tuple[int, bytes]], reading: Reading) -> Iterator[Stamped]:
        for number, text in lines:
            line = parse(text)
            if line is None:
                reading.spoil(f"{self.name}:{number}")
            elif line.kind is not Kind.NOTHING:
                line.pid = line.pid or self.pid
                yield Stamped(line, self._clock.stamp(line), f"{self.name}:{number}")
            elif line.is_relative:
                self._clock.stamp(line)

    def _joined(self, stream: BinaryIO, reading: Reading) -> Iterator[tuple[int, bytes]]:
        """Yield lines; one into which `strace: Process N attached` was written is whole again."""
        before: list[bytes] = []
        n_before = 0
        for number, raw in enumerate(lines_of(self.name, stream), 1):
            reading.n_bytes += len(raw)
            text = raw.removesuffix(b"\n")
            if text.endswith(b" attached") and (found := _ATTACHED.fullmatch(text)):
                if (pid := int(found[2])) <= PID_MAX:
                    reading.announced.add(pid)
                if found[1] and (n_before := n_before + len(found[1])) <= MAX_LINE_BYTES:
                    before.append(found[1])
                continue
            yield number, b"".join((*before, text))
            before.clear()
            n_before = 0


def find(names: Sequence[str]) -> list[str]:
    """Return the files of a log: of `X` that is not there those of -ff, X.PID. EtraceError."""
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == STDIN or path.exists():
            found.append(name)
            continue
        parts = [p for p in path.parent.glob(f"{glob.escape(path.name)}.*") if pid_of(str(p))]
        if not parts:
            raise EtraceError(f"cannot read {name}: no such file", HINT)
        found += sorted(map(str, parts), key=pid_of)
    return found


def pid_of(name: str) -> int:
    """Return the process in the name of a file of -ff, 0 without one."""
    suffix = Path(name).suffix[1:]
    return int(suffix) if suffix.isascii() and suffix.isdigit() and len(suffix) < 8 else 0


@contextlib.contextmanager
def open_log(name: str, buffer_bytes: int = -1) -> Iterator[BinaryIO]:
    """Open a file by name, `-` is standard input. EtraceError."""
    if name == STDIN:
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(name).open("rb", buffering=buffer_bytes))
        except OSError as error:
            raise EtraceError(f"cannot read {name}: {error.strerror}", HINT) from error
        yield stream


def allow_files(n_files: int) -> None:
    """Raise the limit of open files as far as it goes: all files of -ff may be read at once."""
    import resource  # noqa: PLC0415  seldom needed

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n_files + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def first_directory(head: bytes) -> bytes | None:
    """Return the working directory in which a log begins, if -y shows it before it changes."""
    from etrace.imports.strace.values import unescape  # noqa: PLC0415  a cycle otherwise

    changed = _CHDIR.search(head)
    found = _FDCWD.search(head, 0, changed.start() if changed else len(head))
    return unescape(found[1]) if found else None


def shown_directory(line: Line) -> bytes | None:
    """Return the working directory that -y shows in a call of one line."""
    from etrace.imports.strace.values import unescape  # noqa: PLC0415  a cycle otherwise

    found = _FDCWD.match(line.arguments)
    return unescape(found[1]) if found and found[1].startswith(b"/") else None


def children(names: Iterable[str]) -> set[int]:
    """Return the processes that are made in files of -ff."""
    made: set[int] = set()
    for name in names:
        with open_log(name) as stream:
            for text in lines_of(name, stream):
                if (b"clone" in text or b"fork(" in text) and (found := _FORKED.search(text)):
                    made.add(int(found[1]))
    return made


class Merge:
    """The files of -ff in the order of time; that of a child begins when its parent made it.

    Of lines with the same time those of the newest process come first.
    """

    def __init__(self, logs: Sequence[Log], reading: Reading) -> None:
        self._reading = reading
        made = children(log.name for log in logs)
        self._later = {log.pid: log for log in logs if log.pid in made}
        roots = [log for log in logs if log.pid not in made]
        if not roots:  # a pid that came again
            roots = [self._later.pop(min(self._later))]
        self._heap: list[tuple[int, int, Stamped, Iterator[Stamped]]] = []
        self._n_added = 0
        for log in roots:
            self._add(log.lines(reading))

    def begin(self, pid: int) -> None:
        """Add the file of a process that was made now."""
        if (log := self._later.pop(pid, None)) is not None:
            self._add(log.lines(self._reading))

    def __iter__(self) -> Iterator[Stamped]:
        """Yield the lines; those of processes that nothing made come last."""
        while self._heap or self._later:
            if not self._heap:
                self.begin(min(self._later))
                continue
            _, order, stamped, lines = heapq.heappop(self._heap)
            yield stamped
            if (after := next(lines, None)) is not None:
                heapq.heappush(self._heap, (after.time_ns, order, after, lines))

    def _add(self, lines: Iterator[Stamped]) -> None:
        self._n_added += 1
        if (first := next(lines, None)) is not None:
            heapq.heappush(self._heap, (first.time_ns, -self._n_added, first, lines))
