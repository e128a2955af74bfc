# SPDX-License-Identifier: Apache-2.0
"""Events -> the uses of files by each execution: `o` of the reference parser, before it is JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from builders import CLONE_FILES, O_CREAT, O_EXCL, O_PATH, O_TMPFILE, O_TRUNC, RENAME_EXCHANGE
from reference.executions import Execution, Joined, clone_flags
from reference.reader import Event

READ, WRITE, BOTH = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Change:
    """An element of `t`."""

    kind: str
    time_ns: int
    name: bytes | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """An element of `u`."""

    begin_ns: int
    end_ns: int
    access: int


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
        if before.numbers.get("flags", 0) & RENAME_EXCHANGE:
            for name, other in ((old, new), (new, old)):
                exchanged = [Change("x", now_ns, other)] if old != new else []
                uses.append((name, BOTH, now_ns, exchanged))
        else:
            gone, renamed = [Change("g", then_ns)], [Change("r", now_ns, old)]
            uses.append((old, READ, then_ns, gone if old != new else []))
            uses.append((new, WRITE, now_ns, renamed if old != new else []))
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
    return bool(flags & (O_TRUNC | O_TMPFILE)) or flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL


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
