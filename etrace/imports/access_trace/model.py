# SPDX-License-Identifier: Apache-2.0
"""A file access trace as values. Text is bytes: a path has any, except for line ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

VERSIONS = (1, 2, 3)
#: an attribute that does not apply
NOT_APPLICABLE = 0xFFFFFFFF
#: an exit code that nobody reported
NO_EXIT_CODE = 0xBAAAAAAD
#: .NET's ticks of 100 ns since the year 1
TICK_NS = 100
EPOCH_TICKS = 621355968000000000


class Layout(StrEnum):
    """Where paths are: version 1 had both, all versions since 2024-12 have them in one block."""

    SPLIT = "split"  #: in both blocks
    MANIFEST = "manifest"  #: all in the first; the second is empty


class Process(NamedTuple):
    """A process; times are in ticks."""

    pid: int
    program: bytes
    parent: int
    start: int
    end: int
    exit_code: int
    command_line: bytes


class Operation(NamedTuple):
    """One access. One of `manifest` and `path` numbers its path, the other is None."""

    id: int
    pid: int
    manifest: int | None
    path: int | None
    operation: int
    access: int
    error: int
    is_augmented: bool
    pattern: bytes


class Correlation(NamedTuple):
    """Which access an operation reports, and to which other it belongs; 0 is none."""

    id: int
    access: int
    other: int


class Attributes(NamedTuple):
    """The flags of an open, and the attributes of what was opened."""

    id: int
    flags: int
    opened: int


@dataclass(slots=True)
class AccessTrace:
    """A whole file: dictionaries by the numbers of the file, in its order."""

    version: int
    operations: dict[int, bytes] = field(default_factory=dict)
    accesses: dict[int, bytes] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    manifest: dict[int, bytes] = field(default_factory=dict)
    paths: dict[int, bytes] = field(default_factory=dict)
    events: list[Operation] = field(default_factory=list)
    correlations: list[Correlation] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=list)

    def path_of(self, event: Operation) -> bytes:
        """Return the path of an operation, empty when it has none."""
        if event.manifest is not None:
            return self.manifest.get(event.manifest, b"")
        return self.paths.get(event.path, b"") if event.path is not None else b""


def ticks(unix_ns: int) -> int:
    """Return a time since 1970 in ticks."""
    return unix_ns // TICK_NS + EPOCH_TICKS


def unix_ns(when: int) -> int:
    """Return ticks as ns since 1970."""
    return (when - EPOCH_TICKS) * TICK_NS
