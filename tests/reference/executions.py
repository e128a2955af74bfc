# SPDX-License-Identifier: Apache-2.0
"""Events -> the execution that each belongs to, its other half beside it, and who forked whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from reference.reader import Event

Execution = tuple[int, int]
FROM = {
    "RenameFrom": ("RenameTo", "RenameFailed"),
    "Rename2From": ("RenameTo", "RenameFailed"),
    "LinkFrom": ("LinkTo", "LinkFailed"),
    "LinkatFrom": ("LinkTo", "LinkFailed"),
    "SysClone": ("SchedFork", "SysCloneFailed"),
}
#: needs one of these right before it
AFTER = {
    "RenameTo": ("RenameFrom", "Rename2From"),
    "LinkTo": ("LinkFrom", "LinkatFrom"),
    "SysCloneFailed": ("SysClone",),
    "MountFailed": ("Mount",),
}
#: events that say nothing of where the process ran
ASIDE = ("Usage", "Written")


@dataclass(frozen=True, slots=True)
class Joined:
    """An event with its neighbours in its upid and the execution it belongs to."""

    event: Event
    before: Event | None
    after: Event | None
    execution: Execution


@dataclass(slots=True)
class Forks:
    """Who forked whom, and the forks of children that have a parent already."""

    parent: dict[int, Execution] = field(default_factory=dict)
    children: dict[Execution, list[dict[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    refused: list[Event] = field(default_factory=list)


def join(events: list[Event]) -> list[Joined]:
    """Give each event its neighbours and its execution."""
    out, index = [], 0
    neighbours = zip([None, *events], events, [*events[1:], None], strict=False)
    for before, event, after in neighbours:
        index += event.tag == "New_proc"
        out.append(Joined(event, before, after, (event.upid, index)))
    return out


def without_halves(events: list[Event]) -> list[Event]:
    """Leave out the halves without their other half next to them."""
    return [joined.event for joined in join(events) if is_whole(joined)]


def is_whole(joined: Joined) -> bool:
    """Return whether an event is next to the other half that it needs, if any."""
    before, tag, after = joined.before, joined.event.tag, joined.after
    if tag in FROM:
        return after is not None and after.tag in FROM[tag]
    if tag in AFTER:
        return before is not None and before.tag in AFTER[tag]
    return True


def clone_flags(joined: Joined) -> int:
    """Return the flags of the clone that made a SchedFork, 0 for fork and vfork."""
    clone = joined.before
    return clone.numbers["flags"] if clone and clone.tag == "SysClone" else 0


def find_forks(in_time: list[Joined]) -> Forks:
    """Find parents and children; the first claim of a child counts."""
    forks = Forks()
    for joined in in_time:
        if joined.event.tag != "SchedFork":
            continue
        child = joined.event.numbers["pid"]
        if child in forks.parent:
            forks.refused.append(joined.event)
            continue
        forks.parent[child] = joined.execution
        made = {"p": child, "f": clone_flags(joined), "t": joined.event.time_ns}
        forks.children[joined.execution].append(made)
    return forks


def find_argv(
    execution: Execution,
    argvs: dict[Execution, tuple[bytes, ...]],
    forks: Forks,
    n_copied: Counter[Execution],
) -> tuple[bytes, ...]:
    """Return an execution's argv; index 0 has a copy of that of the execution that forked it."""
    seen = set()
    owner = execution
    while owner not in argvs:
        if owner in seen or owner[0] not in forks.parent:
            return ()
        seen.add(owner)
        owner = forks.parent[owner[0]]
    argv = argvs[owner]
    if owner != execution:
        argv = argv if n_copied[owner] < 65_536 else argv[:64]
        n_copied[owner] += len(argv)
    return argv
