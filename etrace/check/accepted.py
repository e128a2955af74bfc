# SPDX-License-Identifier: Apache-2.0
"""A file of faults that somebody accepts, each with the reason.

A line is `ID FILE TARGET # reason`, as `etrace check` prints it; FILE and TARGET may have `*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from libetrace.core.regular_file import read_regular

from etrace.check.kinds import KINDS, Fault
from etrace.errors import EtraceError

N_WORDS = 3
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Accepted:
    """One line."""

    id: str
    file: str
    target: str
    reason: str

    def covers(self, fault: Fault) -> bool:
        """Whether the line is about a fault."""
        name, file, target = fault.key.split(" ", 2)
        return name == self.id and fnmatchcase(file, self.file) and fnmatchcase(target, self.target)


def read(path: Path) -> list[Accepted]:
    """Return the lines of a file. EtraceError names the line that is not one; OSError."""
    found = []
    text = read_regular(path, MAX_BYTES, is_text=True).decode("utf-8", "surrogateescape")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        text, mark, reason = line.partition(" # ")
        words = text.split()
        if len(words) != N_WORDS or words[0] not in KINDS or not mark or not reason.strip():
            raise EtraceError(
                f"{path}:{number}: not a fault and a reason: {line}",
                "write: ID FILE TARGET # reason, as etrace check shows it",
            )
        found.append(Accepted(words[0], words[1], words[2], reason.strip()))
    return found


def split(
    faults: Iterable[Fault], accepted: Iterable[Accepted]
) -> tuple[list[Fault], list[Fault], list[Accepted]]:
    """Return faults that nobody accepts, those that somebody does, and lines about no fault."""
    lines, new, old, used = list(accepted), list[Fault](), list[Fault](), set[Accepted]()
    for fault in faults:
        covering = [line for line in lines if line.covers(fault)]
        used.update(covering)
        (old if covering else new).append(fault)
    return new, old, [line for line in lines if line not in used]
