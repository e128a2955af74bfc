# SPDX-License-Identifier: Apache-2.0
"""A file access trace -> its text: UTF-8 without a mark, lines ended by a newline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from etrace.imports.access_trace.model import AccessTrace, Operation, Process

ROOM_LINES = 4096


def write(trace: AccessTrace, stream: BinaryIO) -> None:
    """Write a trace, its blocks unchanged."""
    room: list[bytes] = []
    for line in lines(trace):
        room.append(line)
        if len(room) == ROOM_LINES:
            stream.write(b"\n".join([*room, b""]))
            room = []
    stream.write(b"\n".join([*room, b""]) if room else b"")


def lines(trace: AccessTrace) -> Iterator[bytes]:
    """Yield the lines of a trace."""
    yield b"%d" % trace.version
    yield from _named(trace.operations)
    yield from _named(trace.accesses)
    yield b"%d" % len(trace.processes)
    for process in trace.processes:
        yield _process(process)
        yield process.command_line
    yield from _named(dict(sorted(trace.manifest.items())))
    yield from _named(trace.paths)
    yield b"%d" % len(trace.events)
    yield from map(_event, trace.events)
    if trace.version > 1:
        yield b"%d" % len(trace.correlations)
        yield from (b"%d,%d,%d" % each for each in trace.correlations)
    if trace.version > 2:
        yield b"%d" % len(trace.attributes)
        yield from (b"%d,%d,%d" % each for each in trace.attributes)


def _named(names: Mapping[int, bytes]) -> Iterator[bytes]:
    yield b"%d" % len(names)
    yield from (b"%d=%b" % pair for pair in names.items())


def _process(p: Process) -> bytes:
    numbers = (p.parent, p.start, p.end, p.exit_code)
    return b'%d,"%b",%d,%d,%d,%d' % (p.pid, p.program, *numbers)


def _event(event: Operation) -> bytes:
    manifest = b"" if event.manifest is None else b"%d" % event.manifest
    path = b"" if event.path is None else b"%d" % event.path
    numbers = (event.operation, event.access, event.error, event.is_augmented)
    return b"%d,%d,%b,%b,%d,%d,%d,%d,%b" % (
        event.id, event.pid, manifest, path, *numbers, event.pattern,
    )  # fmt: skip
