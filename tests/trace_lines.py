# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Event lines for comparison: what a run decides is replaced, what the format promises is checked.

Written from docs/format.md alone; shares no code with the parser. upids become names (`1` the
task of interest, `1.2` its second child), so two runs compare task by task; lines of different
tasks have no order between them.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

PREFIX = re.compile(rb"(\d+),(\d+),(\d+),(\d+)!")
OPEN = re.compile(rb"(Open\|.*,flags=)(\d+)(,mode=)(\d+)(,fd=.*)")
FORK = re.compile(rb"SchedFork\|pid=(\d+)")
# Lines that only go on with the event begun before them.
DATA = re.compile(rb"(PI|PP|CW|A|FN|FO|RF|RT|LF|LT|ST|SR|SL|MS|MT|MX|CN|OU)(\||\[\d+\]|_end$)")
CONTINUED = re.compile(rb"(Cont\||Cont_end|End_of_args\|)")
HAS_MODE = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE
UPID_PID_BITS = 22
ANY = b"<any>"
ENVIRONMENT = "0"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace; `time_ns` is CLOCK_MONOTONIC."""

    upid: int
    cpu: int
    time_ns: int
    data: bytes

    @property
    def goes_on(self) -> bool:
        """Whether the line belongs to the event of the line before it in its upid."""
        return bool(DATA.match(self.data) or CONTINUED.match(self.data))


@dataclass(slots=True)
class Trace:
    """A whole trace, in file order."""

    cwd: bytes
    lines: list[Line]
    comments: list[bytes] = field(default_factory=list)
    usage: list[Line] = field(default_factory=list)  # no program can say what they hold

    def of(self, upid: int) -> list[Line]:
        """Return the lines of one task."""
        return [line for line in self.lines if line.upid == upid]

    def program(self, path: bytes) -> int:
        """Return the upid of the first task that executed `path`."""
        for line in self.lines:
            if line.data == b"PI|" + path:
                return line.upid
        raise AssertionError(f"no New_proc of {path!r} in the trace")

    def roots(self) -> list[int]:
        """Return the upids that no line announces, in order of appearance."""
        seen = dict.fromkeys(line.upid for line in self.lines if line.upid)
        forked = {int(m[1]) for line in self.lines if (m := FORK.match(line.data))}
        return [upid for upid in seen if upid not in forked]


def parse(trace: bytes) -> Trace:
    """Read a trace, failing on the first line that is not what the format promises."""
    first, *rest = trace.split(b"\n")
    assert first.startswith(b"INITCWD=/"), f"first line is {first!r}"
    assert trace.endswith(b"\n"), "last line has no newline"
    lines: list[Line] = []
    comments = []
    usage: list[Line] = []
    for number, text in enumerate(rest[:-1], 2):
        if text.startswith(b"#"):
            comments.append(text)
            continue
        match = PREFIX.match(text)
        assert match, f"line {number} has no prefix: {text!r}"
        words = match.groups()
        upid, cpu, sec, nsec = map(int, words)
        assert [str(n).encode() for n in (upid, cpu, sec, nsec)] == list(words), f"padded: {text!r}"
        assert nsec < 1_000_000_000, text
        line = Line(upid, cpu, sec * 1_000_000_000 + nsec, text[match.end() :])
        (usage if line.data.startswith(b"Usage|") else lines).append(line)
    return Trace(first.removeprefix(b"INITCWD="), lines, comments, usage)


def check_stamps(trace: Trace, start_ns: int, end_ns: int) -> None:
    """Check: an event has one stamp, a task's never go back, and all are of now."""
    last: dict[int, Line] = {}
    for line in trace.lines:
        if line.upid == 0:
            continue
        before = last.get(line.upid)
        if line.goes_on:
            assert before is not None, f"nothing before {line}"
            assert (before.time_ns, before.cpu) == (line.time_ns, line.cpu), f"{before} {line}"
        assert before is None or before.time_ns <= line.time_ns, f"goes back: {before} {line}"
        assert start_ns <= line.time_ns <= end_ns, f"not of this run: {line}"
        last[line.upid] = line


def name_tasks(trace: Trace, root: int) -> dict[int, str]:
    """Name `root` "1" and its descendants after their order among the children of their parent."""
    names = {root: "1"}
    children: defaultdict[int, int] = defaultdict(int)
    pending = [(line.upid, int(m[1])) for line in trace.lines if (m := FORK.match(line.data))]
    while pending:
        known = [pair for pair in pending if pair[0] in names]
        if not known:
            break
        for parent, child in known:
            children[parent] += 1
            assert child not in names, f"upid {child} was made twice"
            names[child] = f"{names[parent]}.{children[parent]}"
        pending = [pair for pair in pending if pair[1] not in names]
    return names


def without_run_details(data: bytes) -> bytes:
    """Replace what the format leaves undefined: the mode of an open that creates nothing."""
    match = OPEN.fullmatch(data)
    if match and not int(match[2]) & HAS_MODE:
        return match[1] + match[2] + match[3] + b"0" + match[5]
    return data


def by_task(trace: Trace, root: int) -> dict[str, list[bytes]]:
    """Return the lines of each task from the New_proc of `root` on, by the task's name."""
    names = name_tasks(trace, root)
    tasks: dict[str, list[bytes]] = defaultdict(list)
    started = False
    for line in trace.lines:
        started = started or (line.upid == root and line.data.startswith(b"New_proc|"))
        if line.upid not in names or not started:
            continue
        fork = FORK.match(line.data)
        data = b"SchedFork|pid=" + names[int(fork[1])].encode() if fork else line.data
        tasks[names[line.upid]].append(without_run_details(data))
    variables = environment([line.data for line in trace.lines if line.upid == 0], names)
    if variables:
        tasks[ENVIRONMENT] = variables
    return dict(tasks)


def environment(lines: Iterable[bytes], names: dict[int, str]) -> list[bytes]:
    """Return each variable with each task that was started with it, in one order."""
    pairs = set()
    for upids, variable in _groups(lines):
        for upid in upids:
            name = names[int(upid)].encode() if upid.isdigit() and int(upid) in names else upid
            pairs.add((name, b"\n".join(variable)))
    return [b"UPID|" + name + b" " + variable for name, variable in sorted(pairs)]


def _groups(lines: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    upids: list[bytes] = []
    variable: list[bytes] = []
    for line in lines:
        if line.startswith(b"UPID|"):
            if variable:
                yield upids, variable
                upids, variable = [], []
            upids.append(line.removeprefix(b"UPID|"))
        else:
            assert re.match(rb"(Env\[\d+\]|Cont\||Cont_end\|)", line), (
                f"in the environment: {line!r}"
            )
            variable.append(line)
    if upids or variable:
        yield upids, variable


def expected(printed: bytes) -> tuple[dict[str, list[bytes]], dict[str, int]]:
    """Read what a program of tests/events printed: lines by task, and kernel tids by task."""
    tasks: dict[str, list[bytes]] = defaultdict(list)
    tids = {}
    assert printed.endswith(b"\n"), "the program was cut short"
    for line in printed[:-1].split(b"\n"):
        if line.startswith(b"#tid "):
            _, name, tid = line.decode().split()
            tids[name] = int(tid)
            continue
        name_bytes, _, data = line.partition(b"!")
        tasks[name_bytes.decode()].append(without_run_details(data))
    if ENVIRONMENT in tasks:
        tasks[ENVIRONMENT] = environment(tasks[ENVIRONMENT], {})
    return dict(tasks), tids


def without_written(tasks: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Leave out what was written to standard error: some backends do not record it."""
    kept: dict[str, list[bytes]] = {}
    for name, lines in tasks.items():
        kept[name] = []
        is_text = False
        for line in lines:
            goes_on = DATA.match(line) or CONTINUED.match(line)
            is_text = line.startswith(b"Written|") or (is_text and bool(goes_on))
            kept[name] += [] if is_text else [line]
    return kept


def compare_run(printed: bytes, trace: Trace, program: bytes, *, has_written: bool = True) -> str:
    """Compare what a program of tests/events printed with the trace of its run.

    `has_written`: the backend records what is written to standard error. Returns a unified diff,
    empty when both say the same. Checks as well that each upid holds the kernel's tid, which needs
    a trace made in the pid namespace of the program.
    """
    wanted, tids = expected(printed)
    wanted = wanted if has_written else without_written(wanted)
    root = trace.program(program)
    upids = {name: upid for upid, name in name_tasks(trace, root).items()}
    for name, tid in tids.items():
        upid = upids.get(name)
        assert upid is None or upid & ((1 << UPID_PID_BITS) - 1) == tid, (
            f"{name}: {upid} is not {tid}"
        )
    return difference(wanted, by_task(trace, root))


def difference(wanted: dict[str, list[bytes]], got: dict[str, list[bytes]]) -> str:
    """Return a unified diff of all tasks, empty when they are the same."""
    filled = {name: _filled(wanted.get(name, []), lines) for name, lines in got.items()}
    return "\n".join(
        difflib.unified_diff(_all(wanted), _all(filled), "expected", "captured", lineterm="", n=4)
    )


def _all(tasks: dict[str, list[bytes]]) -> list[str]:
    return [f"{name}!{_shown(line)}" for name in sorted(tasks) for line in tasks[name]]


def _filled(wanted: list[bytes], got: list[bytes]) -> list[bytes]:
    """Return `got` with the placeholders of `wanted` where it has a number."""
    lines = list(got)
    for i, (want, line) in enumerate(zip(wanted, got, strict=False)):
        head, mark, tail = want.partition(ANY)
        if mark and re.fullmatch(re.escape(head) + rb"\d+" + re.escape(tail), line):
            lines[i] = want
    return lines


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


@dataclass(slots=True)
class Event:
    """One event put together from its lines; a string or item of several parts is whole again."""

    tag: str
    args: dict[str, int]
    time_ns: int
    strings: dict[str, bytes] = field(default_factory=dict)
    items: list[bytes] = field(default_factory=list)


def events(lines: Iterable[Line]) -> Iterator[Event]:
    """Put the lines of one task together."""
    event: Event | None = None
    for line in lines:
        if not line.goes_on:
            if event:
                yield event
            tag, _, args = line.data.decode().partition("|")
            pairs = (pair.split("=") for pair in args.split(",") if pair)
            event = Event(tag, {name: int(value) for name, value in pairs}, line.time_ns)
        else:
            assert event, f"nothing before {line}"
            _add_text(event, line.data)
    if event:
        yield event


def events_by_task(trace: Trace) -> Iterator[Iterator[Event]]:
    """Yield the events of one task after the other, without variables of the environment."""
    tasks: defaultdict[int, list[Line]] = defaultdict(list)
    for line in trace.lines:
        if line.upid:
            tasks[line.upid].append(line)
    return map(events, tasks.values())


def _add_text(event: Event, data: bytes) -> None:
    if item := re.match(rb"A\[(\d+)\]", data):
        index = int(item[1])
        if index == len(event.items):
            event.items.append(b"")
        event.items[index] += data[item.end() :]
    elif data.startswith(b"Cont|"):
        text = b"\n" + data.removeprefix(b"Cont|")
        if event.items:
            event.items[-1] += text
        else:
            event.strings[list(event.strings)[-1]] += text
    elif string := re.match(rb"([A-Z]+)(?:\||\[\d+\])", data):
        tag = string[1].decode()
        event.strings[tag] = event.strings.get(tag, b"") + data[string.end() :]
