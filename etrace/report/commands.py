# SPDX-License-Identifier: Apache-2.0
"""The commands of the page, as columns."""

from __future__ import annotations

import os
from collections.abc import Iterator

from libetrace.image.file import Table

from etrace.advise.build import Build
from etrace.errors import EtraceError
from etrace.query.rows.classes import Classes
from etrace.query.rows.commands import FORK, Commands
from etrace.query.rows.labels import Labels
from etrace.query.rows.targets import Targets
from etrace.report.pack import Pack, shown
from etrace.spec.database import NONE
from etrace.timing.critical_path import CriticalPath, doubts
from etrace.timing.path_groups import group_path
from etrace.timing.schedule import cpu_times

#: arguments of all commands together; what is beyond is left out, and the page says so
MAX_ARGUMENTS = 6_000_000
#: instead of an exit status: the process went on as another program
REPLACED = -2
CLASSES = ("command", "compiler", "linker")


def _status(table: Table, row: int) -> int:
    """Return the exit status of a command, NONE when it is not known, or REPLACED."""
    upid = table["upid"]
    if row + 1 < len(upid) and upid[row + 1] == upid[row]:
        return REPLACED
    return int(table["status"][row])


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


def add_commands(pack: Pack, commands: Commands, labels: Labels) -> None:
    """Add the columns `command.*`."""
    image, rows = commands.image, commands.rows
    table = image["executions"]
    base = min(table["start_ns"], default=0)
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
    pack.add("command.status", "h", (_status(table, row) for row in rows))
    pack.add("command.program", "I", (pack.text(commands.program(row)) for row in rows))
    pack.add("command.cwd", "I", (text(table["cwd"][row]) for row in rows))
    pack.meta["fork"] = pack.text(FORK)
    kinds = Classes(image)
    pack.add("command.class", "B", (CLASSES.index(kinds.of_execution(row) or "command")
                                    for row in rows))  # fmt: skip
    pack.add("command.label", "I", (pack.text(os.fsencode(labels.of(row))) for row in rows))
    _add_arguments(pack, commands, labels)
    _add_usage(pack, commands)
    _add_targets(pack, commands)


def _add_arguments(pack: Pack, commands: Commands, labels: Labels) -> None:
    room, left_out = MAX_ARGUMENTS, 0

    def lists() -> Iterator[list[int]]:
        nonlocal room, left_out
        for row in commands.rows:
            argv = labels.arguments(row)
            kept = argv[:room]
            left_out += len(kept) < len(argv)
            room -= len(kept)
            yield [pack.text(word) for word in kept]

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


def add_critical_path(pack: Pack, commands: Commands, build: Build) -> CriticalPath | None:
    """Add which commands are on the critical path, and the slack of all; None without a path."""
    try:
        found = build.critical_path
    except EtraceError as error:
        pack.meta["no_critical_path"] = shown(os.fsencode(str(error)))
        return None
    on_path = {commands.of(row) for row in found.executions}
    pack.add("command.critical", "B", (number in on_path for number in range(len(commands.rows))))
    pack.add("command.slack", "d", map(found.slack_ns.__getitem__, commands.rows))
    groups = group_path(found, build.phases, build.labels)
    pack.add("path.phase", "i", (commands.of(group.phase) for group in groups))
    pack.add("path.program", "I", (pack.text(os.fsencode(group.program)) for group in groups))
    pack.add("path.ns", "d", (group.path_ns for group in groups))
    pack.add("path.n", "I", (group.n_steps for group in groups))
    pack.add("path.longest", "i", (commands.of(group.longest.execution) for group in groups))
    pack.meta["critical"] = {
        "ns": found.path_ns,
        "doubts": [[ns, shown(os.fsencode(where))] for ns, where in doubts(commands.image, found)],
    }
    return found
