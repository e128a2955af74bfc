# SPDX-License-Identifier: Apache-2.0
"""Trace bytes -> events, slowly and obviously: the first half of the reference parser.

Written from docs/format.md and seed 004 alone. Clarity over speed: everything is read line by line,
each upid's lines by a cursor that raises at the first line that is not what it must be.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field

from event_lines import KINDS, SYNTAX, arguments

PREFIX = re.compile(rb"([0-9]+),([0-9]+),([0-9]+),([0-9]+)!", re.DOTALL)
LOST = re.compile(rb"CPU:[0-9]+ \[LOST ([0-9]+) EVENTS\]")
NUMBERED = re.compile(rb"(\w+)\[([0-9]+)\](.*)", re.DOTALL)
RANGES = {
    "u32": range(2**32),
    "s32": range(-(2**31), 2**31),
    "u64": range(2**64),
    "s64": range(-(2**63), 2**63),
}
ENVIRONMENT_UPID = 0
MAX_STATUS = 2**15 - 1  # of an Exit
MAX_DIGITS = 100  #: read of a number; no field fits more


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its prefix taken apart; `place` is (file number, line number from 1)."""

    place: tuple[int, int]
    upid: int
    cpu: int
    time_ns: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One whole event. Stamp, CPU and place are those of its own line."""

    place: tuple[int, int]
    position: int  #: among all lines, after files were merged
    upid: int
    cpu: int
    time_ns: int
    tag: str
    numbers: dict[str, int] = field(default_factory=dict)
    strings: dict[str, bytes] = field(default_factory=dict)
    argv: tuple[bytes, ...] = ()

    @property
    def order(self) -> tuple[int, int]:
        """The place of the event among those of all upids."""
        return self.time_ns, self.position


@dataclass(frozen=True, slots=True)
class EnvironmentGroup:
    """Processes and a variable that they were started with."""

    upids: tuple[int, ...]
    variable: bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cost an event."""

    place: tuple[int, int]
    message: str


@dataclass(slots=True)
class Reading:
    """Everything that was read; `events` has each upid's events in order of their stamps."""

    events: dict[int, list[Event]] = field(default_factory=dict)
    environment: list[EnvironmentGroup] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)  #: of all lines
    process_stamps: list[int] = field(default_factory=list)  #: of all lines but the environment's
    n_lost: int = 0


class BrokenError(Exception):
    """The event being read ends here, unfinished or wrong."""


class Cursor:
    """The lines of one upid in one file, taken one after the other."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.at = 0

    def peek(self) -> bytes:
        """Return the next line's data; BrokenError at the end."""
        if self.at == len(self.lines):
            raise BrokenError("cut off by the end of the file")
        return self.lines[self.at].data

    def take(self) -> Line:
        """Step over the next line."""
        self.at += 1
        return self.lines[self.at - 1]

    def next_is(self, start: bytes) -> bool:
        """Return whether there is a next line that begins so."""
        return self.at < len(self.lines) and self.lines[self.at].data.startswith(start)

    def next_number(self, tag: bytes) -> int | None:
        """Return n when the next line is `TAG[n]...`."""
        if self.at < len(self.lines):
            match = NUMBERED.fullmatch(self.lines[self.at].data)
            if match and match[1] == tag:
                return number(match[2])
        return None


def number(digits: bytes) -> int:
    """Read a number of which a garbled line may have any number of digits; int() has a limit."""
    sign, value = (b"-", digits[1:]) if digits.startswith(b"-") else (b"", digits)
    return int(sign + (value.lstrip(b"0") or b"0")[:MAX_DIGITS])


def read(inputs: list[bytes]) -> Reading:
    """Read whole files in the order given."""
    reading = Reading()
    files = [split_lines(nth, content, reading) for nth, content in enumerate(inputs)]
    by_upid: dict[int, list[Line]] = {}
    positions: dict[tuple[int, int], int] = {}
    for line in heapq.merge(*files, key=lambda line: line.time_ns):
        by_upid.setdefault(line.upid, []).append(line)
        positions[line.place] = len(positions)
        reading.stamps.append(line.time_ns)
        if line.upid != ENVIRONMENT_UPID:
            reading.process_stamps.append(line.time_ns)
    for upid, lines in by_upid.items():
        if upid == ENVIRONMENT_UPID:
            read_environment(Cursor(lines), reading)
        else:
            read_events(Cursor(lines), positions, reading)
    for events in reading.events.values():
        events.sort(key=lambda event: event.time_ns)  # stable
    return reading


def split_lines(file_number: int, content: bytes, reading: Reading) -> list[Line]:
    """Return the lines that have a prefix; note the others."""
    raw_lines = content.split(b"\n")
    if raw_lines[-1] == b"":
        raw_lines.pop()
    out = []
    for line_number, raw in enumerate(raw_lines, 1):
        place = (file_number, line_number)
        if raw.startswith(b"#") or (line_number == 1 and raw.startswith(b"INITCWD=")):
            continue
        line = split_prefix(place, raw)
        if line:
            out.append(line)
        elif lost := LOST.search(raw):
            reading.n_lost += number(lost[1])
        else:
            reading.problems.append(Problem(place, "no prefix"))
    return out


def split_prefix(place: tuple[int, int], raw: bytes) -> Line | None:
    """Take the first `N,N,N,N!` and what follows it."""
    match = PREFIX.search(raw)
    if not match:
        return None
    upid, cpu, seconds, nanoseconds = (number(group) for group in match.groups())
    time_ns = seconds * 10**9 + nanoseconds
    fits = upid < 2**63 and cpu < 2**32 and nanoseconds < 10**9 and time_ns < 2**63
    return Line(place, upid, cpu, time_ns, raw[match.end() :]) if fits else None


def read_events(cursor: Cursor, positions: dict[tuple[int, int], int], reading: Reading) -> None:
    """Read the events of one upid; a broken one costs itself."""
    while cursor.at < len(cursor.lines):
        line = cursor.take()
        try:
            event = read_event(line, positions[line.place], cursor)
        except BrokenError as error:
            reading.problems.append(Problem(line.place, str(error)))
        else:
            reading.events.setdefault(line.upid, []).append(event)


def read_event(line: Line, position: int, cursor: Cursor) -> Event:
    """Read the event whose own line is `line` and whose strings come next."""
    tag, numbers, sizes = read_arguments(line.data)
    strings = {name: read_string(cursor, name.encode(), size) for name, size in sizes.items()}
    argv = read_argv(cursor, numbers["argsize"]) if tag == "New_proc" else ()
    head = (line.place, position, line.upid, line.cpu, line.time_ns)
    return Event(*head, tag, numbers, strings, argv)


def read_arguments(data: bytes) -> tuple[str, dict[str, int], dict[str, int]]:
    """Return the tag, the numbers by argument name and the sizes by string tag."""
    raw_tag, bar, rest = data.partition(b"|")
    tag = raw_tag.decode("latin-1")
    if not bar or tag not in SYNTAX:
        raise BrokenError(f"unknown or unexpected {raw_tag!r}")
    fields = rest.split(b",") if rest else []
    numbers: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for name, kind, may_be_absent in arguments(tag):
        if fields and fields[0].startswith(name.encode() + b"="):
            value = fields.pop(0).partition(b"=")[2]
            if kind in KINDS:
                numbers[name] = read_number(value, kind)
            else:
                sizes[kind] = read_number(value, "u32")
        elif not may_be_absent:
            raise BrokenError(f"{tag}: argument {name} is missing")
    if fields:
        raise BrokenError(f"{tag}: foreign argument {fields[0]!r}")
    if tag == "SchedFork" and numbers["pid"] <= 0:
        raise BrokenError("SchedFork: no such child")
    if tag == "Exit" and numbers["status"] > MAX_STATUS:
        raise BrokenError("Exit: no such status")
    if tag == "Usage" and min(numbers.values()) < -1:
        raise BrokenError("Usage: no such number")
    if tag == "Written" and (numbers["fd"] not in (1, 2) or numbers["cut"] < 0):
        raise BrokenError("Written: no such descriptor or number")
    return tag, numbers, sizes


def read_number(text: bytes, kind: str) -> int:
    """Read a decimal number of this C type."""
    if not re.fullmatch(rb"-?[0-9]+", text) or (kind[0] == "u" and text.startswith(b"-")):
        raise BrokenError(f"{text!r} is not a number of type {kind}")
    value = number(text)
    if value not in RANGES[kind]:
        raise BrokenError(f"{value} does not fit {kind}")
    return value


def read_string(cursor: Cursor, tag: bytes, size: int) -> bytes:
    """Read one string in either form and compare its length."""
    if cursor.next_is(tag + b"|"):
        text = cursor.take().data[len(tag) + 1 :]
        if len(text) < size:
            text += read_continuation(cursor)
    elif cursor.next_number(tag) == 0:
        text = read_parts(cursor, tag)
        if cursor.peek() != tag + b"_end":
            raise BrokenError(f"{tag!r}: its end line is missing")
        cursor.take()
    else:
        raise BrokenError(f"{tag!r} is missing, found {cursor.peek()[:40]!r}")
    if len(text) != size:
        raise BrokenError(f"{tag!r} has {len(text)} bytes, not {size}")
    return text


def read_parts(cursor: Cursor, tag: bytes) -> bytes:
    """Read `TAG[0]`, `TAG[1]`, ... as long as they go on."""
    text, number = b"", 0
    while cursor.next_number(tag) == number:
        text += read_numbered(cursor)
        number += 1
    return text


def read_numbered(cursor: Cursor) -> bytes:
    """Read one `TAG[n]part` and its group of Cont lines."""
    match = NUMBERED.fullmatch(cursor.take().data)
    assert match
    return match[3] + (read_continuation(cursor) if cursor.next_is(b"Cont|") else b"")


def read_continuation(cursor: Cursor) -> bytes:
    """Read one or more Cont lines and the Cont_end that closes them."""
    text = b""
    while cursor.next_is(b"Cont|"):
        text += b"\n" + cursor.take().data[len(b"Cont|") :]
    if not text or cursor.peek() not in (b"Cont_end|", b"Cont_end"):
        raise BrokenError("a group of Cont lines is missing or not closed")
    cursor.take()
    return text


def read_argv(cursor: Cursor, argsize: int) -> tuple[bytes, ...]:
    """Read the arguments up to End_of_args; `argsize` counts their null bytes too."""
    argv: list[bytes] = []
    while cursor.peek() != b"End_of_args|":
        number = cursor.next_number(b"A")
        if number == len(argv):
            argv.append(read_numbered(cursor))
        elif number is not None and number == len(argv) - 1:
            argv[-1] += read_numbered(cursor)
        else:
            raise BrokenError(f"argument {len(argv)} is missing, found {cursor.peek()[:40]!r}")
    cursor.take()
    size = sum(len(argument) + 1 for argument in argv)
    if size != argsize:
        raise BrokenError(f"arguments have {size} bytes, not {argsize}")
    return tuple(argv)


def read_environment(cursor: Cursor, reading: Reading) -> None:
    """Read the groups of upid 0."""
    while cursor.at < len(cursor.lines):
        start = cursor.at
        try:
            reading.environment.append(read_group(cursor))
        except BrokenError as error:
            reading.problems.append(Problem(cursor.lines[start].place, str(error)))
            if cursor.at == start:
                cursor.take()


def read_group(cursor: Cursor) -> EnvironmentGroup:
    """Read UPID lines and the parts of their variable."""
    upids = []
    while cursor.next_is(b"UPID|"):
        upid = read_number(cursor.take().data[len(b"UPID|") :], "s64")
        if upid < 0:
            raise BrokenError("UPID: negative")
        upids.append(upid)
    if not upids or cursor.next_number(b"Env") != 0:
        raise BrokenError("an environment group is UPID lines and then Env[0]")
    variable = read_parts(cursor, b"Env")
    if cursor.next_number(b"Env"):  # not the number that goes on, not 0 of another variable
        raise BrokenError("a part of a variable is missing")
    return EnvironmentGroup(tuple(upids), variable)
