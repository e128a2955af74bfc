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
    """What is wrong, why that matters, and what to do; the words before its commands.

    Those of the writer are first.
    """

    severity: Severity
    title: str
    why: str
    cure: str
    first: str = "written by"
    second: str = "read by"


KINDS = {
    MISSING_INPUT: Kind(
        Severity.WARNING, "A recipe reads a file that its target does not depend on",
        "a change of the file does not make the target again",
        "Add the file to the prerequisites of the target, or let the compiler write them (-MMD)",
    ),
    MISSING_ORDER: Kind(
        Severity.WARNING, "A recipe reads what another recipe makes, and does not wait for it",
        "with -j the reader may run before the file is written, or in the middle of it",
        "Add the file to the prerequisites of the reader, after | if only its presence matters",
    ),
    MISSING_DIRECTORY: Kind(
        Severity.WARNING, "A recipe writes into a directory that another one makes",
        "with -j the writer may run before the directory is there",
        "Add the directory to the prerequisites of the writer, after |",
        "made by", "needed by",
    ),
    TWO_WRITERS: Kind(
        Severity.WARNING, "Two recipes write the same file, and neither waits for the other",
        "with -j both may write at once, and the last one wins",
        "Let one recipe write the file, for all of its targets at once (a b &: c, or a stamp)",
        "written by", "and by",
    ),
    SHARED_TEMPORARY: Kind(
        Severity.WARNING, "Two recipes use the same temporary file",
        "with -j each may take or remove the temporary file of the other",
        "Give the file a name of its own in each recipe, such as $@.tmp",
        "written by", "and by",
    ),
    UNDECLARED_OUTPUT: Kind(
        Severity.LOW, "A recipe writes a file that no rule names, and another recipe reads it",
        "when the file is removed, nothing makes it again, and its reader fails",
        "Make the file a target of the rule that writes it",
    ),
    NEVER_READ: Kind(
        Severity.NOTE, "A target depends on a file that its recipe does not open",
        "a change of the file makes the target again in vain",
        "Remove the file from the prerequisites", second="for",
    ),
    NETWORK: Kind(
        Severity.NOTE, "A recipe asks a server", "the target depends on what a server answers",
        "Keep what is fetched beside the sources, and compare its hash", second="used by",
    ),
    HOME: Kind(
        Severity.NOTE, "A recipe reads a file of the user's home",
        "the target depends on whose home it is built with",
        "Keep the file beside the sources, or set HOME to an empty directory",
    ),
    TIME_OR_RANDOM: Kind(
        Severity.NOTE, "A recipe uses the time, or random numbers",
        "each build may make another target",
        "Use the time of the sources (SOURCE_DATE_EPOCH) and a constant seed", second="used by",
    ),
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
