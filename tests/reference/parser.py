# SPDX-License-Identifier: Apache-2.0
"""Trace bytes -> what etrace_parser must make of them: the second half of the reference parser.

Written from docs/nfsdb-json.md, docs/format.md and seeds 001 and 004 alone, for clarity and not for
speed; tests compare the Cython parser with it on whole values.
"""

from __future__ import annotations

import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from builders import CLONE_FILES, O_CREAT, O_EXCL, O_PATH, O_TRUNC, RENAME_EXCHANGE
from reference import descriptors, pipes, reader
from reference.descriptors import Held, Joined
from reference.pipes import Execution, Step
from reference.reader import Event, Problem, Reading

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
#: numbers of a Usage and their keys
USAGE = dict(
    zip(
        ("user", "system", "maxrss", "rchar", "wchar", "voluntary", "forced"),
        "usmrwvf",
        strict=True,
    )
)
#: events that say nothing of where the process ran
ASIDE = ("Usage", "Written")
READ, WRITE, BOTH = 0, 1, 2
EXISTS = 0x40

Entry = dict[str, Any]


@dataclass(slots=True)
class Parsed:
    """All products of a parse, as `json.load` would give them."""

    entries: list[Entry]
    env: dict[str, list[int]]
    mounts: list[Entry]
    problems: list[Problem]
    n_lost: int


@dataclass(frozen=True, slots=True)
class Change:
    """An element of `t`."""

    kind: str
    time_ns: int
    name: bytes | None = None

    def value(self) -> Entry:
        own: Entry = {"k": self.kind, "t": self.time_ns}
        return own if self.name is None else own | {"n": text(self.name)}


@dataclass(frozen=True, slots=True)
class Use:
    """An element of `u`."""

    begin_ns: int
    end_ns: int
    access: int

    def value(self) -> Entry:
        return {"b": self.begin_ns, "e": self.end_ns, "m": self.access}


@dataclass(frozen=True, slots=True)
class Record:
    """One use of a file."""

    original: bytes
    resolved: bytes
    begin_ns: int
    end_ns: int
    access: int
    last_ns: int = -1  # end of the last use of the same pair
    is_copy: bool = False  # of a descriptor: counts for the last use alone
    changes: tuple[Change, ...] = ()  # what it did beyond reading and writing
    uses: tuple[Use, ...] = ()  # of the same pair, when they are several

    @property
    def until_ns(self) -> int:
        return max(self.begin_ns, self.end_ns, self.last_ns)


@dataclass(slots=True)
class OpenFile:
    """An Open whose Close may come."""

    opened: Event
    execution: Execution
    is_ended: bool = False
    is_copy: bool = False

    def record(self, end_ns: int) -> Record:
        strings, access = self.opened.strings, self.opened.numbers["flags"] & 3
        begin_ns = self.opened.time_ns
        uses = strings["FO"], strings["FN"], begin_ns, end_ns, min(access, BOTH)
        changes = (Change("e", begin_ns),) if empties(self.opened.numbers["flags"]) else ()
        return Record(*uses, is_copy=self.is_copy, changes=() if self.is_copy else changes)


@dataclass(slots=True)
class Forks:
    """Who forked whom, and the forks of children that have a parent already."""

    parent: dict[int, Execution] = field(default_factory=dict)
    children: dict[Execution, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    refused: list[Event] = field(default_factory=list)


def parse(inputs: list[bytes]) -> Parsed:
    """Parse a trace given as one or several files."""
    reading = reader.read(inputs)
    joined = [each for events in reading.events.values() for each in join(events)]
    halves = [each.event for each in joined if not is_whole(each)]
    in_time = sorted(
        (each for events in reading.events.values() for each in join(without_halves(events))),
        key=lambda each: each.event.order,
    )
    forks = find_forks(in_time)
    kept = [each for each in in_time if each.event not in forks.refused]
    entries = build_entries(kept, forks, reading)
    problems = list(reading.problems)
    problems += (Problem(event.place, "half of a pair") for event in halves)
    problems += (Problem(event.place, "has a parent already") for event in forks.refused)
    return Parsed(entries, environment(reading), mounts(kept), problems, reading.n_lost)


def parse_one(trace: bytes) -> Parsed:
    """Parse a trace given as one file."""
    return parse([trace])


# ---- one upid ------------------------------------------------------------------------------------


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


# ---- all upids -----------------------------------------------------------------------------------


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
        forks.children[joined.execution].append({"p": child, "f": clone_flags(joined)})
    return forks


def build_entries(in_time: list[Joined], forks: Forks, reading: Reading) -> list[Entry]:
    """Return the entries in order of upid and index."""
    by_upid: dict[int, list[Joined]] = defaultdict(list)
    for joined in in_time:
        by_upid[joined.event.upid].append(joined)
    records = find_records(in_time)
    links = pipes.pipe_links(pipe_steps(by_upid, in_time))
    inherited = descriptors.find_inherited(in_time)
    argvs = {j.execution: j.event.argv for j in in_time if j.event.tag == "New_proc"}
    stats: dict[bytes, tuple[int, int]] = {}
    entries = []
    for upid, events in sorted(by_upid.items()):
        for entry in process_entries(upid, events, reading):
            execution = (upid, entry["x"])
            parent = forks.parent.get(upid, (-1, 0))
            entry["r"] = execution_value(parent)
            entry["c"] = forks.children[execution]
            entry["v"] = [text(argument) for argument in find_argv(execution, argvs, forks)]
            readers = [reader for reader in links.get(execution, []) if reader[0] in by_upid]
            entry["h"] = [inherited_value(fd, held) for fd, held in inherited[execution]]
            entry["i"] = [execution_value(reader) for reader in readers]
            entry["o"] = [file_value(r, stats) for r in merge_records(records[execution])]
            entries.append({key: entry[key] for key in "pxsebwvcrihuay!o" if key in entry})
    return entries


def process_entries(upid: int, events: list[Joined], reading: Reading) -> list[Entry]:
    """Return the entries of one upid with the keys that follow from its events alone."""
    n_executions = events[-1].execution[1] + 1
    base_ns, end_ns = min(reading.process_stamps), max(reading.stamps)
    exits = [j.event for j in events if j.event.tag == "Exit"]
    starts = [
        next(j.event.time_ns for j in events if j.execution[1] >= index)
        for index in range(n_executions)
    ]
    ends = [*starts[1:], events[-1].event.time_ns if exits else end_ns]
    entries = []
    used = usages(events, n_executions)
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        own = [j.event for j in events if j.execution[1] == index]
        first = own[0].strings if index else {}
        entry: Entry = {"p": upid, "x": index, "s": start - base_ns, "e": end - start}
        entry["b"], entry["w"] = text(first.get("PI", b"")), text(first.get("CW", b""))
        entry["u"] = cpus([event for event in own if event.tag not in ASIDE], base_ns)
        if used[index]:
            entry["a"] = used[index]
        pieces = [written_value(event) for event in own if event.tag == "Written"]
        if pieces:
            entry["y"] = pieces
        if exits and index == n_executions - 1:
            entry["!"] = exits[-1].numbers["status"]
        entries.append(entry)
    return entries


def written_value(event: Event) -> Entry:
    """Return one piece of what an execution wrote."""
    cut = {"c": event.numbers["cut"]} if event.numbers["cut"] else {}
    return {"d": event.numbers["fd"], **cut, "t": text(event.strings["OU"])}


def usages(events: list[Joined], n_executions: int) -> list[Entry]:
    """Return what each execution used: its last Usage without the sums of the ones before."""
    used: list[Entry] = []
    before = dict.fromkeys(USAGE, 0)
    for index in range(n_executions):
        own = [j.event for j in events if j.execution[1] == index and j.event.tag == "Usage"]
        used.append({})
        for name, letter in USAGE.items() if own else ():
            now = own[-1].numbers[name]
            if name == "maxrss" and now >= 0:
                used[-1][letter] = now
            elif name != "maxrss" and now >= before[name]:
                used[-1][letter] = now - before[name]
                before[name] = now
    return used


def cpus(events: list[Event], base_ns: int) -> list[Entry]:
    """Return where an execution ran: its first event and each that is on another CPU."""
    previous = [None, *[event.cpu for event in events]]
    return [
        {"c": event.cpu, "t": event.time_ns - base_ns}
        for before, event in zip(previous, events, strict=False)
        if event.cpu != before
    ]


def find_argv(
    execution: Execution, argvs: dict[Execution, tuple[bytes, ...]], forks: Forks
) -> tuple[bytes, ...]:
    """Return an execution's argv; index 0 has that of the execution that forked it."""
    seen = set()
    while execution not in argvs:
        if execution in seen or execution[0] not in forks.parent:
            return ()
        seen.add(execution)
        execution = forks.parent[execution[0]]
    return argvs[execution]


# ---- files ---------------------------------------------------------------------------------------


def find_records(in_time: list[Joined]) -> dict[Execution, list[Record]]:
    """Return the uses of files by each execution, in the order in which they were made."""
    records: dict[Execution, list[Record]] = defaultdict(list)
    tables: dict[int, dict[int, OpenFile]] = {}
    every_table: list[dict[int, OpenFile]] = []
    opens: list[OpenFile] = []
    last_ns = {j.event.upid: j.event.time_ns for j in in_time}
    seen: set[int] = set()

    def end(table: dict[int, OpenFile], fd: int, end_ns: int) -> None:
        file = table.pop(fd, None)
        if file and (file.is_copy or not file.is_ended):
            file.is_ended = True
            records[file.execution].append(file.record(end_ns))

    for joined in in_time:
        event, numbers = joined.event, joined.event.numbers
        if event.upid not in tables:
            tables[event.upid] = {}
            every_table.append(tables[event.upid])
        table = tables[event.upid]
        seen.add(event.upid)
        source = table.get(numbers["oldfd"]) if event.tag == "Dup" else None
        for fd in replaced_descriptors(event):
            end(table, fd, event.time_ns)
        records[joined.execution] += immediate_records(joined)
        match event.tag:
            case "Open":
                opens.append(OpenFile(event, joined.execution))
                table[numbers["fd"]] = opens[-1]
            case "Dup" if source and numbers["oldfd"] != numbers["newfd"]:
                table[numbers["newfd"]] = OpenFile(source.opened, source.execution, is_copy=True)
            case "New_proc" if sum(other is table for other in tables.values()) > 1:
                tables[event.upid] = dict(table)
                every_table.append(tables[event.upid])
            case "SchedFork":
                child = numbers["pid"]
                if clone_flags(joined) & CLONE_FILES and child not in seen:
                    tables[child] = table
    copies = [file for table in every_table for file in table.values() if file.is_copy]
    for file in (*opens, *copies):
        if file.is_copy or not file.is_ended:
            records[file.execution].append(file.record(last_ns[file.opened.upid]))
    return records


def replaced_descriptors(event: Event) -> list[int]:
    """Return the descriptors whose file an event ends."""
    numbers = event.numbers
    match event.tag:
        case "Open" | "Close":
            return [numbers["fd"]]
        case "Pipe":
            return [numbers["fd1"], numbers["fd2"]]
        case "Dup" if numbers["oldfd"] != numbers["newfd"]:
            return [numbers["newfd"]]
    return []


def immediate_records(joined: Joined) -> list[Record]:
    """Return the records of renames and links, which have no end."""
    event, before = joined.event, joined.before
    now_ns, strings = event.time_ns, event.strings
    uses: list[tuple[bytes, int, int, list[Change]]] = []
    if event.tag == "RenameTo" and before:
        old, new, then_ns = before.strings["RF"], strings["RT"], before.time_ns
        changes = old != new and not before.numbers.get("flags", 0) & RENAME_EXCHANGE
        gone, renamed = [Change("g", then_ns)], [Change("r", now_ns, old)]
        uses = [(old, READ, then_ns, gone if changes else [])]
        uses.append((new, WRITE, now_ns, renamed if changes else []))
    elif event.tag == "LinkTo" and before:
        old, new = before.strings["LF"], strings["LT"]
        linked = [Change("l", now_ns, old)] if old != new else []
        uses = [(new, WRITE, now_ns, linked), (old, READ, before.time_ns, [])]
    elif event.tag == "Symlink":
        if "SR" in strings:
            uses.append((strings["SR"], READ, now_ns, []))
        uses.append((strings["SL"], WRITE, now_ns, [Change("s", now_ns, strings["ST"])]))
    return [
        Record(path, path, begin_ns, 0, access, changes=tuple(changes))
        for path, access, begin_ns, changes in uses
    ]


def empties(flags: int) -> bool:
    """Return whether a file is empty or new after an Open with these flags."""
    if flags & O_PATH:
        return False
    return bool(flags & O_TRUNC) or flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL


def merge_records(records: Iterable[Record]) -> list[Record]:
    """Make one record of each pair of original and resolved path, ordered by both."""
    merged: dict[tuple[bytes, bytes], Record] = {}
    begins: dict[tuple[bytes, bytes], int] = {}
    in_order = sorted(records, key=lambda record: record.is_copy)
    for record in in_order:
        pair = (record.original, record.resolved)
        first = merged.get(pair)
        begins[pair] = min(begins.get(pair, record.begin_ns), record.begin_ns)
        if first is None:
            merged[pair] = record
            continue
        access = first.access if first.access == record.access else BOTH
        last_ns = max(first.until_ns, record.until_ns)
        changes = first.changes + record.changes
        times = (first.begin_ns, first.end_ns)
        merged[pair] = Record(*pair, *times, access, last_ns, changes=changes)
    write_ends = [record.until_ns for record in in_order if record.access != READ]
    own: defaultdict[tuple[bytes, bytes], list[Record]] = defaultdict(list)
    for record in in_order:
        own[record.original, record.resolved].append(record)
    for pair, records_of_pair in own.items():
        merged[pair] = replace(merged[pair], uses=uses_of(records_of_pair, write_ends))
    return [with_begin(merged[pair], begins[pair]) for pair in sorted(merged)]


def uses_of(records: list[Record], write_ends: list[int]) -> tuple[Use, ...]:
    """Return the uses of a pair, none when they are one."""
    found: list[Use] = []
    for use in sorted(
        (Use(r.begin_ns, r.until_ns, r.access) for r in records), key=lambda use: use.begin_ns
    ):
        last = found[-1] if found else None
        if last and (
            use.begin_ns == last.begin_ns
            or use.begin_ns < last.end_ns
            or (
                last.access == use.access == READ
                and not any(last.begin_ns <= end < use.begin_ns for end in write_ends)
            )
        ):
            access = last.access if last.access == use.access else BOTH
            found[-1] = Use(last.begin_ns, max(last.end_ns, use.end_ns), access)
        else:
            found.append(use)
    return tuple(found) if len(found) > 1 else ()


def with_begin(record: Record, begin_ns: int) -> Record:
    """Add when the first use began, if the record has another time."""
    if begin_ns == record.begin_ns:
        return record
    return replace(record, changes=(Change("f", begin_ns), *record.changes))


def file_value(record: Record, stats: dict[bytes, tuple[int, int]]) -> Entry:
    """Return a record of `o`; `stats` remembers what was asked of the file system."""
    if record.original not in stats:
        stats[record.original] = file_state(record.original)
    type_bits, size = stats[record.original]
    value: Entry = {"p": text(record.resolved)}
    if record.original != record.resolved:
        value["o"] = text(record.original)
    times: Entry = {"b": record.begin_ns, "e": record.end_ns}
    if record.until_ns > max(record.begin_ns, record.end_ns):
        times["l"] = record.until_ns
    if record.changes:
        times["t"] = [change.value() for change in record.changes]
    if record.uses:
        times["u"] = [use.value() for use in record.uses]
    return value | times | {"m": type_bits | record.access, "s": size}


def file_state(path: bytes) -> tuple[int, int]:
    """Return the `e` and `mmmm` bits and the size of a file as it is now."""
    try:
        state = os.lstat(path)
    except (OSError, ValueError):  # ValueError: a null byte
        return 0, 0
    return EXISTS | stat.S_IFMT(state.st_mode) >> 10, state.st_size


# ---- pipes, environment, mounts ------------------------------------------------------------------


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


def environment(reading: Reading) -> dict[str, list[int]]:
    """Join the groups of the same variable; keys in order of bytes."""
    upids: dict[bytes, set[int]] = defaultdict(set)
    for group in reading.environment:
        upids[group.variable].update(group.upids)
    return {text(variable): sorted(upids[variable]) for variable in sorted(upids)}


def mounts(in_time: list[Joined]) -> list[Entry]:
    """Return mounts and umounts in order of time."""
    out = []
    for joined in in_time:
        event, after = joined.event, joined.after
        if event.tag not in ("Mount", "Umount"):
            continue
        upid, index = joined.execution
        value: Entry = {"p": upid, "x": index, "t": event.time_ns, "k": event.tag.lower()}
        names = (("source", "MS"), ("target", "MT"), ("type", "MX"))
        value |= {key: text(event.strings[tag]) for key, tag in names if tag in event.strings}
        failed = after is not None and after.tag == event.tag + "Failed"
        out.append(value | {"flags": event.numbers["flags"], "ok": not failed})
    return out


def text(raw: bytes) -> str:
    """Return bytes as JSON text: UTF-8, other bytes as lone surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def inherited_value(descriptor: int, held: Held) -> Entry:
    """Return a record of `h`."""
    strings, flags = held.opened.strings, held.opened.numbers["flags"]
    return {"d": descriptor, "p": text(strings["FN"]), "m": min(flags & 3, BOTH)}


def execution_value(execution: Execution) -> Entry:
    """Return a reference to an execution."""
    return {"p": execution[0], "x": execution[1]}


def json_bytes(value: Any) -> bytes:
    """Return one value in the very bytes of the output file."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escaped = (f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in shown)
    return "".join(escaped).encode()


def entries_bytes(entries: list[Entry]) -> bytes:
    """Return the whole output file: one entry a line."""
    return (
        b"[\n"
        + b",\n".join(json_bytes(entry) for entry in entries)
        + b"\n"[: len(entries)]
        + b"]\n"
    )
