# SPDX-License-Identifier: Apache-2.0
"""Executions -> the commands of the page, as columns.

What a process did before its first program belongs to that program, what a thread did to its
process.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator

from libetrace.depend.threads import find_thread_owners
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.classes.kinds import Kinds
from etrace.query.classes.labels import Labels
from etrace.query.classes.shown_executions import shown_executions
from etrace.query.targets import Targets
from etrace.report.pack import Pack, shown
from etrace.spec.database import NONE
from etrace.timing.critical_path import doubts, find_critical_path
from etrace.timing.usage import cpu_times

#: arguments of all commands together; what is beyond is left out, and the page says so
MAX_ARGUMENTS = 6_000_000
CLASSES = ("command", "compiler", "linker")


class Commands:
    """The commands of one image: `rows` are rows of `executions`, in order of time."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._table = image["executions"]
        self.rows = sorted(shown_executions(image), key=self._table["start_ns"].__getitem__)
        self.number = {row: i for i, row in enumerate(self.rows)}
        #: number of the command of each execution, NONE for none
        self._above: dict[int, int] = {NONE: NONE}  # of executions that are no commands
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

    def program(self, row: int) -> bytes:
        """Return the name of an execution's program."""
        binary = self._table["binary"][row]
        if binary == NONE:
            return b"(fork)"
        return self.image.path_string(binary).rpartition(b"/")[2]

    def argv(self, row: int) -> list[int]:
        """Return the strings of an execution's arguments."""
        strings = self.image["arguments"]["string"]
        return [strings[i] for i in self._table.span("argv.start", row)]


def statuses(image: Image) -> list[int]:
    """Return the exit status of the process of each execution, NONE when it is not known."""
    upid, status = image["executions"]["upid"], image["executions"]["status"]
    found = list(status)
    for row in range(len(found) - 2, -1, -1):
        if upid[row] == upid[row + 1]:
            found[row] = found[row + 1]
    return found


def _without_rings(parents: list[int]) -> list[int]:
    """Cut rings of parents, which only a damaged trace has."""
    state = bytearray(len(parents))  # 1 on the way, 2 done
    for start in range(len(parents)):
        way, at = [], start
        while at != NONE and not state[at]:
            state[at] = 1
            way.append(at)
            at = parents[at]
        if at != NONE and state[at] == 1:
            parents[way[-1]] = NONE
        for each in way:
            state[each] = 2
    return parents


def add_commands(pack: Pack, commands: Commands) -> None:
    """Add the columns `command.*`."""
    image, rows = commands.image, commands.rows
    table = image["executions"]
    base = min((table["start_ns"][row] for row in rows), default=0)
    texts: dict[int, int] = {}

    def text(string: int) -> int:
        if string not in texts:
            texts[string] = pack.text(image.string(string))
        return texts[string]

    pack.add("command.start", "d", (table["start_ns"][row] - base for row in rows))
    pack.add("command.elapsed", "d", (max(0, table["elapsed_ns"][row]) for row in rows))
    parents = _without_rings([commands.parent(i) for i in range(len(rows))])
    pack.add("command.parent", "i", parents)
    pack.add("command.upid", "d", (table["upid"][row] for row in rows))
    pack.add("command.index", "i", (table["index"][row] for row in rows))
    pack.add("command.status", "h", map(statuses(image).__getitem__, rows))
    pack.add("command.program", "I", (pack.text(commands.program(row)) for row in rows))
    pack.add("command.cwd", "I", (text(table["cwd"][row]) for row in rows))
    kinds = Kinds(image)
    pack.add("command.class", "B", (CLASSES.index(kinds.of_execution(row) or "command")
                                    for row in rows))  # fmt: skip
    labels = Labels(image)
    pack.add("command.label", "I", (pack.text(os.fsencode(labels.of(row))) for row in rows))
    _add_arguments(pack, commands, text)
    _add_usage(pack, commands)
    _add_targets(pack, commands)


def _add_arguments(pack: Pack, commands: Commands, text: Callable[[int], int]) -> None:
    room, left_out = MAX_ARGUMENTS, 0

    def lists() -> Iterator[list[int]]:
        nonlocal room, left_out
        for row in commands.rows:
            argv = commands.argv(row)
            kept = argv[:room]
            left_out += len(kept) < len(argv)
            room -= len(kept)
            yield [text(string) for string in kept]

    pack.add_lists("command.argv", lists())
    if left_out:
        pack.meta["cut_arguments"] = left_out


def _add_usage(pack: Pack, commands: Commands) -> None:
    """Add CPU time and memory, where the trace has them; -1 for a command without."""
    cpu, rows = cpu_times(commands.image), commands.rows
    if cpu is None:
        return
    pack.add("command.cpu", "d", (cpu[row] for row in rows))
    pack.add("command.memory", "d", map(commands.image["usage"]["max_rss_bytes"].__getitem__, rows))


def _add_targets(pack: Pack, commands: Commands) -> None:
    """Add what make or ninja ran each command for, where `cas pp` found any; empty: not known."""
    targets = Targets(commands.image)
    if any(targets.names(row) for row in commands.rows):
        texts = (pack.text(b" ".join(targets.names(row))) for row in commands.rows)
        pack.add("command.target", "I", texts)


def add_critical_path(pack: Pack, commands: Commands) -> None:
    """Add which commands are on the critical path, and the slack of all."""
    try:
        found = find_critical_path(commands.image)
    except EtraceError as error:
        pack.meta["no_critical_path"] = shown(os.fsencode(str(error)))
        return
    on_path = {commands.of(row) for row in found.executions}
    pack.add("command.critical", "B", (number in on_path for number in range(len(commands.rows))))
    pack.add("command.slack", "d", map(found.slack_ns.__getitem__, commands.rows))
    pack.meta["critical"] = {
        "ns": found.path_ns,
        "parallelism": found.perfect_parallelism,
        "doubts": [[ns, shown(os.fsencode(where))] for ns, where in doubts(commands.image, found)],
    }
