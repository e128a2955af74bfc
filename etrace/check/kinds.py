# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults, and one fault."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from os.path import relpath
from typing import NamedTuple

MISSING_INPUT, MISSING_ORDER, TWO_WRITERS = "missing-input", "missing-order", "two-writers"
MISSING_DIRECTORY, SHARED_TEMPORARY = "missing-directory", "shared-temporary"
UNDECLARED_OUTPUT = "undeclared-output"
NEVER_READ, NETWORK, HOME, TIME_OR_RANDOM = "never-read", "network", "home", "time-or-random"


class Severity(enum.StrEnum):
    """How much a fault matters; notes are shown only on demand."""

    WARNING = "warning"
    LOW = "low"
    NOTE = "note"


class Kind(NamedTuple):
    """Why a fault is one; the words before its commands, that of the writer first."""

    severity: Severity
    why: str
    first: str = "written by"
    second: str = "read by"


KINDS = {
    MISSING_INPUT: Kind(Severity.WARNING, "a change of the file does not make the target again"),
    MISSING_ORDER: Kind(
        Severity.WARNING,
        "with -j the reader may run before the file is written, or in the middle of it",
    ),
    MISSING_DIRECTORY: Kind(
        Severity.WARNING, "with -j the writer may run before the directory is there",
        "made by", "needed by",
    ),
    TWO_WRITERS: Kind(
        Severity.WARNING, "with -j both may write at once, and the last one wins",
        "written by", "and by",
    ),
    SHARED_TEMPORARY: Kind(
        Severity.WARNING, "with -j each may take or remove the temporary file of the other",
        "written by", "and by",
    ),
    UNDECLARED_OUTPUT: Kind(
        Severity.LOW, "when the file is removed, nothing makes it again, and its reader fails"
    ),
    NEVER_READ: Kind(
        Severity.NOTE, "a change of the file makes the target again in vain", second="for"
    ),
    NETWORK: Kind(Severity.NOTE, "the target depends on what a server answers", second="used by"),
    HOME: Kind(Severity.NOTE, "the target depends on whose home it is built with"),
    TIME_OR_RANDOM: Kind(Severity.NOTE, "each build may make another target", second="used by"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """One file and one make; `writer` is NONE for a file that was there before.

    The file of a missing-directory is a directory, that of `network` a program. `targets` of the
    readers (the writers of two-writers) and `made_for` of the writer are as the
    makefile names them. `remedy` is a line for the makefile in `directory`.
    """

    id: str
    file: str
    directory: str
    makefile: str
    targets: tuple[str, ...]
    made_for: tuple[str, ...]
    reader: int
    writer: int
    remedy: str

    @property
    def key(self) -> str:
        """Return what stays the same from run to run: id, file and first target."""
        base = relpath(self.file, self.directory)
        return f"{self.id} {base} {self.targets[0]}"
