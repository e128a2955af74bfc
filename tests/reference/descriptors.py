# SPDX-License-Identifier: Apache-2.0
"""Which files an execution began with as descriptors 0 to 2: `h` of the reference parser.

Replays what each event does to the descriptors of its upid, as docs/nfsdb-json.md says.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace

from builders import O_CLOEXEC
from reference.executions import Execution, Joined
from reference.reader import Event

FOLLOWED = range(1 << 20)
STANDARD = range(3)
MAX_FORKS = 255


@dataclass(frozen=True, slots=True)
class Held:
    """A file of a descriptor, and how many forks ago it was opened."""

    opened: Event
    closes_on_exec: bool
    n_forks: int = 0


Table = dict[int, Held]


def find_inherited(in_time: list[Joined]) -> dict[Execution, list[tuple[int, Held]]]:
    """Return the descriptors that each execution began with, opened by another upid."""
    tables: dict[int, Table] = {}
    out: dict[Execution, list[tuple[int, Held]]] = defaultdict(list)
    executed: set[int] = set()
    for joined in in_time:
        event = joined.event
        table = tables.setdefault(event.upid, {})
        replay(event, table)
        if event.tag == "SchedFork":
            tables.setdefault(event.numbers["pid"], forked(table))
        elif event.tag == "New_proc":
            executed.add(event.upid)
            out[joined.execution] = standard(table, event.upid)
    for upid in tables.keys() - executed:
        out[upid, 0] = standard(tables[upid], upid)
    return out


def replay(event: Event, table: Table) -> None:
    """Change the descriptors of a upid as its event does."""
    numbers = event.numbers
    match event.tag:
        case "Open":
            table[numbers["fd"]] = Held(event, bool(numbers["flags"] & O_CLOEXEC))
        case "Close":
            table.pop(numbers["fd"], None)
        case "Pipe":
            table.pop(numbers["fd1"], None)
            table.pop(numbers["fd2"], None)
        case "Dup" if numbers["oldfd"] != numbers["newfd"]:
            held = table.get(numbers["oldfd"])
            table.pop(numbers["newfd"], None)
            if held:
                closes_on_exec = bool(numbers["flags"] & O_CLOEXEC)
                table[numbers["newfd"]] = replace(held, closes_on_exec=closes_on_exec)
        case "New_proc":
            for fd in [fd for fd, held in table.items() if held.closes_on_exec]:
                del table[fd]
    for fd in [fd for fd in table if fd not in FOLLOWED]:
        del table[fd]


def forked(table: Table) -> Table:
    """Return what a child begins with."""
    return {
        fd: replace(held, n_forks=held.n_forks + 1)
        for fd, held in table.items()
        if held.n_forks < MAX_FORKS
    }


def standard(table: Table, upid: int) -> list[tuple[int, Held]]:
    """Return descriptors 0 to 2 that another upid opened, without devices."""
    found = [(fd, table[fd]) for fd in STANDARD if fd in table]
    return [(fd, held) for fd, held in found if held.opened.upid != upid and not is_device(held)]


def is_device(held: Held) -> bool:
    path = held.opened.strings["FN"]
    return re.match(rb"/dev/([^/]+$|(pts|fd|snd|input|dri)/)", path) is not None
