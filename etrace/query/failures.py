# SPDX-License-Identifier: Apache-2.0
"""A build that failed -> what made it fail: the commands, the signal, what they wrote last.

A command failed the build when it and every command above it ended with a status other than 0, and
no command below it did. Of the children of a shell only the last counts: the others failed without
ending the shell (`configure` tries what fails). Of those of make it says itself which it ignored.
"""

from __future__ import annotations

import re
import signal
from collections import Counter, defaultdict
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.query.rows.commands import Commands, statuses
from etrace.query.rows.labels import SHELLS as NAMED_SHELLS
from etrace.query.rows.written import STANDARD_ERROR, STANDARD_OUTPUT, Written
from etrace.spec.database import NONE

SHELLS = NAMED_SHELLS | {b"busybox"}
#: a status is that of a signal from here on
SIGNALLED, LAST_SIGNAL = 128, 64
#: signals by which a person or a system ends a whole build
INTERRUPTIONS = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))
#: what make says of a child that failed: `***` when it matters, in every language
OF_MAKE = re.compile(rb"^[^\s:]+(?:\[\d+\])?: (\*\*\* )?\[.+\] [^\n]*?(\d+)?$")


class Failures(NamedTuple):
    """Numbers of the commands that failed the build, the first to end first: it is the cause.

    `interrupted_by` is the signal that ended the build, 0 for none. What it killed is left out.
    """

    commands: list[int]
    interrupted_by: int = 0


def signal_of(status: int) -> int:
    """Return the signal that a status stands for, 0 for none."""
    return status - SIGNALLED if 0 < status - SIGNALLED <= LAST_SIGNAL else 0


def status_text(status: int) -> str:
    """Return `status 1`, `signal 11 (SIGSEGV)`."""
    number = signal_of(status)
    if not number:
        return f"status {status}"
    known = {each.value: each.name for each in signal.Signals}
    return f"signal {number}" + (f" ({known[number]})" if number in known else "")


def find_failures(commands: Commands) -> Failures:
    """Return what made a build fail."""
    if set(commands.image["executions"]["status"]) <= {0, NONE}:
        return Failures([])
    search = _Search(commands)
    found = search.guilty()
    by = search.interruption(found)
    if by:
        found = [each for each in found if signal_of(search.status_of(each)) != by]
        found = [each for each in found if each not in search.roots]
    return Failures(found, by)


class _Search:
    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self.status = statuses(commands.image)
        self.written = Written(commands.image)
        self.below: defaultdict[int, list[int]] = defaultdict(list)
        for number, row in enumerate(commands.rows):
            if self.status[row] not in (0, NONE) and _is_last(commands.image, row):
                self.below[commands.parent(number)].append(number)
        self.roots = frozenset(self.below[NONE])

    def status_of(self, number: int) -> int:
        return self.status[self.commands.rows[number]]

    def ended(self, number: int) -> int:
        return self.commands.end_ns(number)

    def guilty(self) -> list[int]:
        found, waiting, seen = [], list(self.roots), set[int]()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            children = self._that_matter(number)
            waiting += children
            if not children:
                found.append(number)
        return sorted(found, key=self.ended)

    def _that_matter(self, number: int) -> list[int]:
        """Return the failed children that made a command fail."""
        failed = sorted(self._all_below(number), key=self.ended)
        if self.commands.program(self.commands.rows[number]) in SHELLS:
            return failed[-1:]
        lines = self.written.lines(self.commands.rows[number], STANDARD_ERROR)
        said = [match for line in lines if (match := OF_MAKE.match(line))]
        if len(said) == len(failed):
            named = [each for each, match in zip(failed, said, strict=True) if match[1]]
        else:
            named = self._named([int(match[2] or 0) for match in said if match[1]], failed)
        return named or failed

    def _named(self, wanted: list[int], failed: list[int]) -> list[int]:
        """Return the last failed children with these statuses.

        Children that `$(shell)` started fail too, mostly before those of recipes; make is silent.
        """
        left, found = Counter(wanted), []
        for each in reversed(failed):
            status = self.status_of(each)
            if left[status]:
                left[status] -= 1
                found.append(each)
        return found[::-1]

    def _all_below(self, number: int) -> list[int]:
        """Return failed children of all executions of a command's process."""
        commands = self.commands
        upid, row = commands.image["executions"]["upid"], commands.rows[number]
        found = []
        while row >= 0 and upid[row] == upid[commands.rows[number]]:
            if row in commands.number:
                found += self.below.get(commands.number[row], [])
            row -= 1
        return found

    def interruption(self, found: list[int]) -> int:
        """Return the signal that ended the whole build: its first command, or all that failed."""
        for root in self.roots:
            if signal_of(self.status_of(root)) in INTERRUPTIONS:
                return signal_of(self.status_of(root))
        by = {signal_of(self.status_of(each)) for each in found}
        return signal.SIGINT if by == {signal.SIGINT} else 0


def _is_last(image: Image, row: int) -> bool:
    upid = image["executions"]["upid"]
    return row + 1 == len(upid) or bool(upid[row + 1] != upid[row])


def last_lines(commands: Commands, number: int, n_lines: int) -> list[bytes]:
    """Return the last lines that a command wrote, else those of what it started that wrote last.

    Standard error comes first; standard output is shown when there is none.
    """
    written = Written(commands.image)
    rows = written.executions()
    own = [row for row in rows if commands.of(row) == number]
    lines = _lines_of(written, own)
    if not lines:
        below = [row for row in rows if _is_below(commands, row, number)]
        below.sort(key=lambda row: commands.end_ns(commands.of(row)))
        lines = _lines_of(written, below[-1:])
    return lines[-n_lines:]


def _lines_of(written: Written, rows: list[int]) -> list[bytes]:
    for descriptor in (STANDARD_ERROR, STANDARD_OUTPUT):
        lines = [line for row in rows for line in written.lines(row, descriptor)]
        if lines:
            return lines
    return []


def _is_below(commands: Commands, row: int, number: int) -> bool:
    at, seen = commands.of(row), set[int]()
    while at not in (NONE, number) and at not in seen:
        seen.add(at)
        at = commands.parent(at)
    return at == number
