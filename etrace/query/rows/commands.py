# SPDX-License-Identifier: Apache-2.0
"""Executions -> the command that each belongs to, those that a person counts, those that produce.

What a process does before its first program belongs to that program, and what a thread does before
it executes belongs to the process that cloned it (libetrace.depend.execution_facts).

Producing executions exist to make files of files: they compile, archive, link or copy. All others
(shells, make, configure's checks) may be between a file and what it was made of as well, but a
person who asks why means the first.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import partial

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image, Table

from etrace.spec.database import NONE


class NearestCommands:
    """The nearest command of executions, found on demand and remembered."""

    def __init__(self, binary: Sequence[int], parent: Sequence[int]) -> None:
        self._binary, self._parent = binary, parent
        self._known: dict[int, int] = {}  # of those without a program

    def of(self, row: int) -> int:
        """Return the nearest of an execution and its ancestors that ran a program.

        NONE without one. A damaged database may hold a ring of parents: it has none.
        """
        passed, at = list[int](), row
        while at != NONE and self._binary[at] == NONE and at not in self._known:
            self._known[at] = NONE  # what a ring comes to
            passed.append(at)
            at = self._parent[at]
        found = self._known.get(at, at)
        self._known.update(dict.fromkeys(passed, found))
        return found


def nearest_commands(executions: Table) -> list[int]:
    """Return for each execution the nearest of it and its ancestors that ran a program."""
    binary, parent = list(executions["binary"]), list(executions["parent"])
    nearest = NearestCommands(binary, parent)
    return [nearest.of(row) if each == NONE else row for row, each in enumerate(binary)]


def shown_executions(image: Image) -> list[int]:
    """Return rows of `executions`, ascending."""
    executions, owner = image["executions"], find_thread_owners(image)
    upid, binary = executions["upid"].tolist(), executions["binary"].tolist()
    after = [*upid[1:], None]
    return [
        row for row in range(executions.n_rows)
        if binary[row] != NONE or (upid[row] != after[row] and owner[row] == row)
    ]  # fmt: skip


#: the program of a process that ran none
FORK = b"(fork)"


class Commands:
    """The commands of one image: `rows` are rows of `executions`, in order of time."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._table = image["executions"]
        self.rows = sorted(shown_executions(image), key=self._table["start_ns"].__getitem__)
        self.number = {row: i for i, row in enumerate(self.rows)}
        #: number of the command of each execution, NONE for none
        self._above: dict[int, int] = {NONE: NONE}  # of executions that are not commands
        self.owners = self._owners()

    def _owners(self) -> array[int]:
        """Return the number of the command that each execution belongs to, NONE for none."""
        upid, owners = self._table["upid"], array("i", [NONE]) * len(self._table["upid"])
        for row in range(len(owners) - 1, -1, -1):
            if row in self.number:
                owners[row] = self.number[row]
            elif row + 1 < len(owners) and upid[row + 1] == upid[row]:
                owners[row] = owners[row + 1]
        for row, above in enumerate(find_thread_owners(self.image)):
            if above != row:
                owners[row] = owners[above]
        return owners

    def of(self, row: int) -> int:
        """Return the command of an execution, NONE for none."""
        return NONE if row == NONE else self.owners[row]

    def parent(self, number: int) -> int:
        """Return the command that started another, NONE for none."""
        parents, passed = self._table["parent"], []
        row = parents[self.rows[number]]
        while row not in self.number and row not in self._above:
            self._above[row] = NONE  # what a ring of parents comes to
            passed.append(row)
            row = parents[row]
        found = self.number[row] if row in self.number else self._above[row]
        self._above.update(dict.fromkeys(passed, found))
        return found

    def end_ns(self, number: int) -> int:
        """Return when a command ended, since the build began."""
        row = self.rows[number]
        return int(self._table["start_ns"][row] + self._table["elapsed_ns"][row])

    def program(self, row: int) -> bytes:
        """Return the name of an execution's program."""
        binary = self._table["binary"][row]
        if binary == NONE:
            return FORK
        return self.image.path_string(binary).rpartition(b"/")[2]

    def argv(self, row: int) -> list[int]:
        """Return the strings of an execution's arguments."""
        strings = self.image["arguments"]["string"]
        return [strings[i] for i in self._table.span("argv.start", row)]


def last_of_process(executions: Table) -> list[int]:
    """Return for each execution the last one of its upid."""
    upid = executions["upid"].tolist()
    found = list(range(len(upid)))
    for row in range(len(upid) - 2, -1, -1):
        if upid[row] == upid[row + 1]:
            found[row] = found[row + 1]
    return found


def statuses(image: Image) -> list[int]:
    """Return the exit status of the process of each execution, NONE when it is not known."""
    executions = image["executions"]
    return [executions["status"][last] for last in last_of_process(executions)]


#: programs that copy, rename or change a file as a whole
COPIERS = frozenset(b"cp mv ln install ginstall strip objcopy ranlib patchelf".split())


def incidental(image: Image) -> bytes:
    """Return a byte for each execution: 0 where it, or a driver that started it, produces.

    Before its first exec a process is what it becomes, or what its parent is.
    """
    executions = image["executions"]
    upid, index, parent = executions["upid"], executions["index"], executions["parent"]
    mask = bytearray(b"\1") * executions.n_rows
    own = _producing(image)
    for row in sorted(range(executions.n_rows), key=executions["start_ns"].__getitem__):
        above = parent[row]
        is_part = above != NONE and not mask[above]
        follows = row + 1 < executions.n_rows and upid[row + 1] == upid[row]
        becomes = row + 1 if index[row] == 0 and follows else row
        mask[row] = not (becomes in own or is_part)
    return bytes(mask)


def _producing(image: Image) -> set[int]:
    found = set(_known_programs(image))
    for table in ("linked", "compilations"):
        if table in image.tables:
            found.update(image[table]["execution"])
    return found


def _words(image: Image, arguments: memoryview, span: range) -> list[bytes]:
    return [image.string(arguments[i]) for i in span]


def _known_programs(image: Image) -> Iterator[int]:
    from etrace.compilers.tools import load  # noqa: PLC0415  slow to import

    tools, executions = load(), image["executions"]
    arguments = image["arguments"]["string"]
    for row, binary in enumerate(executions["binary"]):
        if binary == NONE:
            continue
        path = image.path_string(binary)
        span = executions.span("argv.start", row)
        argv = partial(_words, image, arguments, span)
        argv0 = image.string(arguments[span[0]]) if span else b""
        tool = tools.tool_of(path, argv0, argv)
        if path.rpartition(b"/")[2] in COPIERS or tool is not None:
            yield row
