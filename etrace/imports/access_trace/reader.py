# SPDX-License-Identifier: Apache-2.0
"""The text of a file access trace -> its values; an error names the line and what it expected.

Read are versions 1 (both layouts), 2 and 3, with and without a byte order mark, with LF or CRLF,
with commas and `=` in paths, with any numbers and names of operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from etrace.errors import EtraceError
from etrace.imports.access_trace.model import (
    VERSIONS,
    AccessTrace,
    Attributes,
    Correlation,
    Operation,
    Process,
)
from etrace.imports.files import lines_of

MARK = b"\xef\xbb\xbf"
U32, U64 = (1 << 32) - 1, (1 << 64) - 1
N_EVENT_FIELDS = 9
_NUMBER = re.compile(rb"\d{1,20}", re.ASCII)
_PROCESS = re.compile(
    rb'(\d{1,20}),"(.*)",(\d{1,20}),(\d{1,20}),(\d{1,20}),(-?\d{1,20})', re.DOTALL
)
HINT = "is it a file access trace of BuildXL (docs/exports.md)?"


class _Lines:
    """The lines of a file, and the number of the last one."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name, self.number = name, 0
        self._lines: Iterator[bytes] = lines_of(name, stream)

    def next(self, expected: str) -> bytes:
        """Return the next line without its end. EtraceError at the end of the file."""
        self.number += 1
        line = next(self._lines, None)
        if line is None:
            raise EtraceError(
                f"{self.name}:{self.number}: the file ends, expected {expected}", "it was cut off"
            )
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        return text.removeprefix(MARK) if self.number == 1 else text

    def refuse(self, expected: str) -> NoReturn:
        """Raise the error about the last line."""
        raise EtraceError(f"{self.name}:{self.number}: expected {expected}", HINT)

    def number_of(self, text: bytes, expected: str, most: int = U64) -> int:
        """Read a number."""
        if not _NUMBER.fullmatch(text) or int(text) > most:
            self.refuse(expected)
        return int(text)

    def count(self, of: str) -> int:
        """Read the first line of a block."""
        expected = f"the number of {of}"
        return self.number_of(self.next(expected), expected, U32)

    def end(self) -> None:
        """Check that only empty lines follow."""
        for line in self._lines:
            self.number += 1
            if line.strip():
                self.refuse("the end of the file")


def read(name: str, stream: BinaryIO) -> AccessTrace:
    """Read a trace from where a stream is. EtraceError."""
    source = _Lines(name, stream)
    expected = f"a version of {', '.join(map(str, VERSIONS))}"
    version = source.number_of(source.next(expected), expected, VERSIONS[-1])
    if version not in VERSIONS:
        source.refuse(expected)
    trace = AccessTrace(version)
    trace.operations = _named(source, "operations", "NUMBER=OPERATION")
    trace.accesses = _named(source, "levels of access", "NUMBER=ACCESS")
    trace.processes = [_process(source) for _ in range(source.count("processes"))]
    trace.manifest = _named(source, "manifest paths", "NUMBER=PATH")
    trace.paths = _named(source, "paths", "NUMBER=PATH")
    trace.events = [_event(source, trace) for _ in range(source.count("operations"))]
    if version > 1:
        trace.correlations = [Correlation(*each) for each in _triples(source, "correlations")]
    if version > 2:
        trace.attributes = [Attributes(*each) for each in _triples(source, "attributes")]
    source.end()
    return trace


def _named(source: _Lines, of: str, form: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for _ in range(source.count(of)):
        number, mark, text = source.next(form).partition(b"=")
        if not mark:
            source.refuse(form)
        key = source.number_of(number, form)
        if key in found:
            source.refuse(f"a number that is not there yet, {key} is")
        found[key] = text
    return found


def _process(source: _Lines) -> Process:
    form = 'PID,"PROGRAM",PARENT,START,END,EXITCODE'
    found = _PROCESS.fullmatch(source.next(form))
    if found is None:
        source.refuse(form)
    pid, program, parent, start, end, code = found.groups()
    exit_code = source.number_of(code.removeprefix(b"-"), form, U32)
    process = Process(
        source.number_of(pid, form, U32), program, source.number_of(parent, form, U32),
        source.number_of(start, form), source.number_of(end, form),
        -exit_code if code.startswith(b"-") else exit_code, b"",
    )  # fmt: skip
    return process._replace(command_line=source.next("a command line"))


def _event(source: _Lines, trace: AccessTrace) -> Operation:
    form = "ID,PID,MANIFESTPATH,PATH,OPERATION,ACCESS,ERROR,0 or 1,PATTERN"
    words = source.next(form).split(b",", N_EVENT_FIELDS - 1)
    if len(words) == N_EVENT_FIELDS - 1:
        words.append(b"")
    if len(words) != N_EVENT_FIELDS or words[7] not in (b"0", b"1"):
        source.refuse(form)
    manifest, path = (source.number_of(word, form) if word else None for word in words[2:4])
    event = Operation(
        source.number_of(words[0], form), source.number_of(words[1], form, U32), manifest, path,
        source.number_of(words[4], form), source.number_of(words[5], form),
        source.number_of(words[6], form, U32), words[7] == b"1", words[8],
    )  # fmt: skip
    _check(source, trace, event)
    return event


def _check(source: _Lines, trace: AccessTrace, event: Operation) -> None:
    """Refuse numbers that no block has."""
    if event.manifest is not None and event.path is not None:
        source.refuse("one path: MANIFESTPATH or PATH")
    known = (
        ("manifest paths", event.manifest, trace.manifest),
        ("paths", event.path, trace.paths),
        ("operations", event.operation, trace.operations),
        ("levels of access", event.access, trace.accesses),
    )
    for of, number, block in known:
        if number is not None and number not in block:
            source.refuse(f"a number of the block of {of}, {number} is not in it")


def _triples(source: _Lines, of: str) -> Iterator[tuple[int, int, int]]:
    form = "ID,NUMBER,NUMBER"
    for _ in range(source.count(of)):
        words = source.next(form).rstrip(b",").split(b",")
        if len(words) != 3:
            source.refuse(form)
        first, second, third = (source.number_of(word, form) for word in words)
        yield first, second, third
