# SPDX-License-Identifier: Apache-2.0
"""Trace bytes -> what etrace_parser must make of them: the second half of the reference parser.

Written from docs/nfsdb-json.md, docs/format.md and seeds 001 and 004 alone, for clarity and not for
speed; tests compare the Cython parser with it on whole values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from reference import descriptors, pipes, reader
from reference.executions import (
    ASIDE,
    Execution,
    Forks,
    Joined,
    find_argv,
    find_forks,
    is_whole,
    join,
    without_halves,
)
from reference.files import find_records, merge_records
from reference.reader import Event, Problem, Reading
from reference.values import (
    Entry,
    add_states,
    execution_value,
    file_value,
    inherited_value,
    text,
    written_value,
)

#: numbers of a Usage and their keys
USAGE = dict(
    zip(
        ("user", "system", "maxrss", "rchar", "wchar", "voluntary", "forced"),
        "usmrwvf",
        strict=True,
    )
)


@dataclass(slots=True)
class Parsed:
    """All products of a parse, as `json.load` would give them."""

    entries: list[Entry]
    env: dict[str, list[int]]
    mounts: list[Entry]
    problems: list[Problem]
    n_lost: int


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


def build_entries(in_time: list[Joined], forks: Forks, reading: Reading) -> list[Entry]:
    """Return the entries in order of upid and index."""
    by_upid: dict[int, list[Joined]] = defaultdict(list)
    for joined in in_time:
        by_upid[joined.event.upid].append(joined)
    records = find_records(in_time)
    links = pipes.pipe_links(pipes.pipe_steps(by_upid, in_time))
    inherited = descriptors.find_inherited(in_time)
    argvs = {j.execution: j.event.argv for j in in_time if j.event.tag == "New_proc"}
    n_copied: Counter[Execution] = Counter()
    stats: dict[bytes, tuple[int, int]] = {}
    entries = []
    for upid, events in sorted(by_upid.items()):
        for entry in process_entries(upid, events, reading):
            execution = (upid, entry["x"])
            parent = forks.parent.get(upid, (-1, 0))
            entry["r"] = execution_value(parent)
            entry["c"] = forks.children[execution]
            entry["v"] = [text(each) for each in find_argv(execution, argvs, forks, n_copied)]
            readers = [reader for reader in links.get(execution, []) if reader[0] in by_upid]
            entry["h"] = [inherited_value(fd, held) for fd, held in inherited[execution]]
            entry["i"] = [execution_value(reader) for reader in readers]
            entry["o"] = [file_value(r, stats) for r in merge_records(records[execution])]
            entries.append({key: entry[key] for key in "pxsebwvcrihuay!o" if key in entry})
    add_states([record for entry in entries for record in entry["o"]], stats)
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
