# SPDX-License-Identifier: Apache-2.0
"""Executions, commands (executions with a program), programs, and the process tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.query.rows.commands import shown_executions
from etrace.query.select.selection import EVERYTHING, Selection, selected_executions
from etrace.spec.database import NONE


def execs(image: Image, selection: Selection = EVERYTHING) -> list[int]:
    """Return rows of `executions`, by (upid, index), also those before the first exec."""
    return selected_executions(image, selection)


def commands(image: Image, selection: Selection = EVERYTHING) -> list[int]:
    """Return rows of `executions` that have a program, by (upid, index)."""
    binary = image["executions"]["binary"]
    return [row for row in execs(image, selection) if binary[row] != NONE]


def binaries(image: Image, selection: Selection = EVERYTHING) -> list[bytes]:
    """Return the distinct paths of programs that ran, sorted as bytes."""
    binary = image["executions"]["binary"]
    rows = {binary[row] for row in execs(image, selection)} - {NONE}
    return [image.path_string(row) for row in sorted(rows)]


class Node(NamedTuple):
    """A row of `executions` and its depth: the number of processes above it."""

    execution: int
    depth: int


def _process(image: Image, first: int) -> range:
    """Return the rows of the upid whose first execution is the row `first`."""
    upid = image["executions"]["upid"]
    last = first
    while last < len(upid) and upid[last] == upid[first]:
        last += 1
    return range(first, last)


def _walk(image: Image, roots: Iterable[range], n_levels: int | None) -> Iterator[Node]:
    executions, child = image["executions"], image["children"]["execution"]
    shown, owner = set(shown_executions(image)), find_thread_owners(image)
    seen: set[int] = set()
    waiting = [(rows, 0) for rows in roots][::-1]
    while waiting:
        rows, depth = waiting.pop()
        for at, row in enumerate(rows):
            if row in seen:  # in a damaged trace a process may be its own ancestor
                continue
            seen.add(row)
            if row in shown:
                yield Node(row, depth)
            forked = [child[i] for i in executions.span("children.start", row)]
            below = [
                (_process(image, first), depth + (owner[first] == first))
                for first in forked
                if first != NONE
            ]
            if n_levels is not None:
                below = [each for each in below if each[1] < n_levels]
            if below:  # then the rest of this process
                waiting += [(rows[at + 1 :], depth), *below[::-1]]
                break


def tree(
    image: Image, selection: Selection = EVERYTHING, *, n_levels: int | None = None
) -> list[Node]:
    """Return the nodes of the whole tree, or of the trees below some executions, parents first.

    A process that executes several programs has a node for each, all at one depth. The part before
    its first exec has a node only when no exec follows. Threads have none: what they start lies
    below the process. Children are in the order of their forks; `n_levels` limits the depth.
    """
    if selection.is_everything:
        parent, index = image["executions"]["parent"], image["executions"]["index"]
        rows = (row for row, above in enumerate(parent) if above == NONE and index[row] == 0)
        roots = [_process(image, row) for row in rows]
    else:
        roots = [range(row, row + 1) for row in selected_executions(image, selection)]
    return list(_walk(image, roots, n_levels))
