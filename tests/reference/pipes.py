# SPDX-License-Identifier: Apache-2.0
"""Which executions could read what others wrote to a pipe: `i` of the reference parser.

Replays every descriptor event of every process in order of time, as docs/nfsdb-json.md says, and
looks after each step at who holds which end of which pipe.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from builders import CLONE_FILES, O_CLOEXEC
from reference.executions import ASIDE, Execution, Joined, clone_flags
from reference.reader import Event

Table = dict[int, "End"]
ORIGINAL = re.compile(rb"/dev/fd/([0-9]+)|/proc/self/fd/([0-9]+)|/dev/std(in|out|err)")
RESOLVED = re.compile(rb"(/proc/[0-9]+/fd/)?pipe:")
STANDARD = {b"in": 0, b"out": 1, b"err": 2}


@dataclass(frozen=True, slots=True)
class End:
    """What a descriptor stands for: one end of one pipe."""

    pipe: int
    writes: bool
    closes_on_exec: bool


@dataclass(frozen=True, slots=True)
class Step:
    """An event as the descriptors see it.

    `closed_by_exec` are the Close lines that a New_proc swallows; `flags` those of the clone.
    """

    event: Event
    execution: Execution
    flags: int = 0
    closed_by_exec: tuple[int, ...] = ()


Role = tuple[Execution, int, bool]  #: an execution, a pipe, and whether the end is the write end


@dataclass(slots=True)
class Replay:
    """The state of all descriptors at one time, and what was seen so far."""

    tables: dict[int, Table] = field(default_factory=dict)
    current: dict[int, Execution] = field(default_factory=dict)
    acted: set[int] = field(default_factory=set)  #: upids with an event
    programs: dict[Execution, bytes] = field(default_factory=dict)
    n_pipes: int = 0
    roles: set[Role] = field(default_factory=set)
    jobservers: set[int] = field(default_factory=set)
    made: set[tuple[Execution, int]] = field(default_factory=set)
    duplicated: set[Role] = field(default_factory=set)
    forked_holding: set[tuple[Role, int]] = field(default_factory=set)  #: and the child

    def links(self) -> dict[Execution, list[Execution]]:
        """Return the readers of each writer, in order."""
        handed_on = {role for role, child in self.forked_holding if self.is_handed_on(role, child)}
        readers: dict[int, set[Execution]] = defaultdict(set)
        writers: dict[int, set[Execution]] = defaultdict(set)
        roles = {role for role in self.roles if not self.is_before_exec(role)}
        for execution, pipe, writes in (roles | self.roles_of_makers(roles)) - handed_on:
            if pipe not in self.jobservers:
                (writers if writes else readers)[pipe].add(execution)
        out: dict[Execution, set[Execution]] = defaultdict(set)
        for pipe in writers.keys() | readers.keys():
            for writer in writers[pipe]:
                out[writer] |= readers[pipe] - {writer}
        return {writer: sorted(reading) for writer, reading in out.items()}

    def roles_of_makers(self, roles: set[Role]) -> set[Role]:
        """Return the ends that nobody held alone, for those who made the pipes."""
        ends = {(pipe, writes) for (upid, _), pipe, writes in roles if upid in self.acted}
        makers = {pipe: execution for execution, pipe in self.made}
        return {
            (makers[pipe], pipe, not writes)
            for pipe, writes in ends
            if (pipe, not writes) not in ends and not self.is_make(makers[pipe])
        }

    def is_make(self, execution: Execution) -> bool:
        """Return whether it is GNU make, which gives jobs a pipe that stays empty."""
        path = self.programs.get(execution, b"")
        return path.endswith((b"/make", b"/gmake", b"/remake"))

    def is_before_exec(self, role: Role) -> bool:
        """Return whether a process had it before its first exec, and had inherited it."""
        execution, pipe, _ = role
        upid, index = execution
        return not index and (upid, 1) in self.programs and (execution, pipe) not in self.made

    def is_handed_on(self, role: Role, child: int) -> bool:
        """Return whether an end was made for this child alone, as a shell's for a command."""
        execution, pipe, writes = role
        by_child = ((child, 0), pipe, writes) in self.duplicated
        return by_child and role not in self.duplicated and (execution, pipe) in self.made

    def take(self, step: Step) -> None:
        """Apply one step, then look at everyone who uses the tables it touched."""
        upid = step.event.upid
        self.current[upid] = step.execution
        self.acted.add(upid)
        table = self.tables.setdefault(upid, {})
        match step.event.tag:
            case "SchedFork":
                self.fork(step, table)
            case "New_proc":
                self.exec(step, table)
            case "Pipe":
                self.pipe(step, table)
            case "Dup":
                numbers = step.event.numbers
                self.dup(step, table, numbers["oldfd"], numbers["newfd"], numbers["flags"])
            case "Open":
                self.open(step, table)
            case "Close":
                table.pop(step.event.numbers["fd"], None)
            case "Exit":
                del self.tables[upid]
        self.look()

    def look(self) -> None:
        """Note every process that holds one end of a pipe and not the other."""
        for upid, table in self.tables.items():
            for pipe, writes in one_sided(table):
                self.roles.add((self.current[upid], pipe, writes))

    def fork(self, step: Step, table: Table) -> None:
        """Give the child its descriptors, unless it was seen before."""
        child = step.event.numbers["pid"]
        for pipe, writes in one_sided(table):
            self.forked_holding.add(((step.execution, pipe, writes), child))
        if child not in self.tables and child not in self.current:
            self.tables[child] = table if step.flags & CLONE_FILES else dict(table)
            self.current[child] = (child, 0)

    def exec(self, step: Step, table: Table) -> None:
        """Leave a shared table, lose what closes on exec."""
        upid, _ = step.execution
        self.programs[step.execution] = step.event.strings["PI"]
        self.tables[upid] = {
            fd: end
            for fd, end in table.items()
            if not end.closes_on_exec and fd not in step.closed_by_exec
        }
        held = {(end.pipe, end.writes) for end in self.tables[upid].values()}
        self.jobservers |= {pipe for pipe, writes in held if (pipe, not writes) in held}

    def pipe(self, step: Step, table: Table) -> None:
        """Make both ends of a new pipe."""
        numbers = step.event.numbers
        cloexec = bool(numbers["flags"] & O_CLOEXEC)
        self.n_pipes += 1
        self.made.add((step.execution, self.n_pipes))
        table[numbers["fd1"]] = End(self.n_pipes, writes=False, closes_on_exec=cloexec)
        table[numbers["fd2"]] = End(self.n_pipes, writes=True, closes_on_exec=cloexec)

    def dup(self, step: Step, table: Table, old: int, new: int, flags: int) -> None:
        """Copy a descriptor over another."""
        if old == new:
            return
        table.pop(new, None)
        if old in table:
            end = table[old]
            self.duplicated.add((step.execution, end.pipe, end.writes))
            table[new] = End(end.pipe, end.writes, closes_on_exec=bool(flags & O_CLOEXEC))

    def open(self, step: Step, table: Table) -> None:
        """Open a file; the name of a descriptor that is a pipe copies it."""
        fd = step.event.numbers["fd"]
        named = named_descriptor(step.event)
        if named is None or named not in table:
            table.pop(fd, None)
        else:
            self.dup(step, table, named, fd, step.event.numbers["flags"])


def one_sided(table: Table) -> set[tuple[int, bool]]:
    """Return `(pipe, writes)` of the ends whose other end the table does not hold."""
    held = {(end.pipe, end.writes) for end in table.values()}
    return {(pipe, writes) for pipe, writes in held if (pipe, not writes) not in held}


def named_descriptor(event: Event) -> int | None:
    """Return N when an Open asks for descriptor N by name and gets a pipe."""
    match = ORIGINAL.fullmatch(event.strings["FO"])
    if not match or not RESOLVED.match(event.strings["FN"]):
        return None
    return STANDARD[match[3]] if match[3] else int(match[1] or match[2])


def pipe_links(steps: list[Step]) -> dict[Execution, list[Execution]]:
    """Return the readers of each writer. `steps` are in order of time."""
    replay = Replay()
    for step in steps:
        replay.take(step)
    return replay.links()


def pipe_steps(by_upid: dict[int, list[Joined]], in_time: list[Joined]) -> list[Step]:
    """Return the events as steps; the Closes of an exec are part of the exec."""
    closed_by: dict[tuple[int, int], tuple[int, ...]] = {}
    swallowed: set[tuple[int, int]] = set()
    for events in by_upid.values():
        run: list[Event] = []
        for j in events:
            if j.event.tag == "New_proc":
                same = [c for c in run if c.time_ns == j.event.time_ns]
                closed_by[j.event.place] = tuple(c.numbers["fd"] for c in same)
                swallowed.update(c.place for c in same)
            if j.event.tag == "Close":
                run.append(j.event)
            elif j.event.tag not in ("Comm", *ASIDE):
                run = []
    return [
        Step(j.event, j.execution, clone_flags(j), closed_by.get(j.event.place, ()))
        for j in in_time
        if j.event.place not in swallowed
    ]
