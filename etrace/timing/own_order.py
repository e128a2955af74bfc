# SPDX-License-Identifier: Apache-2.0
"""Processes -> those that order work themselves, so that the trace does not show what bounds it.

`go`, `cargo` and `xargs -P` start programs side by side as make does, but not by files that a trace
shows; a JVM or a linker does so with threads. The path through such a program is the order that it
chose: with other limits of its own the build may be shorter. The signs are in the trace:

- `PROGRAMS`: two children of a process ran at once that are not parts of one pipeline, or it has
  several threads and started two one after the other, and the later used no file of the other;
- `THREADS`: a process has several threads besides its first. Only its own work is in doubt.

Schedulers by files (make) and shells, whose order is that of their script, do not, and compilers'
drivers start their stages in a fixed order. A program without threads that starts its children one
after the other counts as a script too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise

from libetrace.image.file import Image

from etrace.compilers.tools import RUNNER, load
from etrace.query.rows.labels import SHELLS
from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.processes import Processes, most_at_once

#: one that waits for one other does nothing at once
SEVERAL = 2


class OwnOrder(Enum):
    """What a process orders itself."""

    PROGRAMS = "programs"
    THREADS = "threads"


def find_own_order(image: Image, processes: Processes) -> dict[int, OwnOrder]:
    """Return the processes that order work themselves, by their numbers."""
    found = {
        number: OwnOrder.THREADS
        for number, n_threads in enumerate(processes.n_threads)
        if n_threads >= SEVERAL and not processes.is_scheduler[number]
    }
    may = set(_candidates(image, processes))
    if may:
        pipelines = _Pipelines(image, processes, may)
        groups = {number: pipelines.of(number) for number in may}
        at_once = {n for n in may if most_at_once(_spans(processes, groups[n])) >= SEVERAL}
        selected = at_once | _selected(
            image, processes, {n: groups[n] for n in (may & found.keys())}
        )
        found.update(dict.fromkeys(selected, OwnOrder.PROGRAMS))
    return found


def _candidates(image: Image, processes: Processes) -> Iterator[int]:
    """Yield processes with several children, but for programs that start them in a fixed order."""
    binary, tools, is_known = image["executions"]["binary"], load(), {NONE: False}
    for number, (begin, end) in enumerate(pairwise(processes.child_start)):
        if end - begin < SEVERAL or processes.is_scheduler[number]:
            continue
        program = binary[processes.end[number] - 1]
        if program not in is_known:
            path = image.path_string(program)
            name = path.rpartition(b"/")[2]
            tool = tools.identify(path, name)
            is_known[program] = name in SHELLS or (tool is not None and tool.kind != RUNNER)
        if not is_known[program]:
            yield number


class _Pipelines:
    """Children of processes, those together that one pipe joins.

    Two that both read what the other wrote share a jobserver's pipe, which joins nobody.
    """

    def __init__(self, image: Image, processes: Processes, parents: set[int]) -> None:
        self._processes = processes
        self._joined: dict[int, set[tuple[int, int]]] = {number: set() for number in parents}
        start, reader = image["executions"]["readers.start"], image["pipe_readers"]["execution"]
        seen = set[tuple[int, int]]()
        for row in range(image["executions"].n_rows):
            for at in range(start[row], start[row + 1]):
                seen.add((processes.of_row[row], processes.of_row[reader[at]]))
        for writer, read_by in seen:
            pair = processes.children_of_common(writer, read_by)
            if pair[0] != NONE and (parent := processes[pair[0]].parent) in parents:
                self._joined[parent].add(pair)

    def of(self, parent: int) -> list[list[int]]:
        """Return the children of a process in groups, in the order of their starts."""
        pairs, group = self._joined[parent], dict[int, list[int]]()
        for child in self._processes[parent].children:
            group[child] = [child]
        for a, b in pairs:
            if (b, a) not in pairs and group[a] is not group[b]:
                less, more = sorted((group[a], group[b]), key=len)
                more += less
                group.update(dict.fromkeys(less, more))
        return list({id(each): each for each in group.values()}.values())


def _spans(processes: Processes, groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yield when each group ran."""
    for group in groups:
        own = [processes[each] for each in group]
        yield min(each.start_ns for each in own), max(each.end_ns for each in own)


def _selected(image: Image, processes: Processes, groups: dict[int, list[list[int]]]) -> set[int]:
    """Return the processes of which a group of children used no file of the group before it."""
    if not groups:
        return set()

    children_of = bytes(number in groups for number in range(len(processes)))
    order = find_dependencies(image, processes, children_of=children_of)
    after: dict[int, set[int]] = {}
    for before, number in zip(order.before, order.after, strict=True):
        after.setdefault(number, set()).add(before)

    def follows(earlier: list[int], later: list[int]) -> bool:
        return any(not after.get(each, set()).isdisjoint(earlier) for each in later)

    return {
        number for number, own in groups.items() if any(not follows(a, b) for a, b in pairwise(own))
    }
