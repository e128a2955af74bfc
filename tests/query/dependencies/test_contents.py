# SPDX-License-Identifier: Apache-2.0
"""Dependencies against a model of what contents of files hold, on random histories and real shells.

The model follows data from event to event: a process takes what a file that it has open to read
holds at that moment, and a file takes what a process that has it open to write has read until then.
It knows nothing of uses, lists and ends.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from builders import O_APPEND, O_RDWR, O_TRUNC, O_WRONLY, TraceBuilder
from databases import capture_database, database_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from query.traced_builds import NEW, SH, Opened, command, names, shell, users

from etrace.query.dependencies import deps

PROCESSES = (1 << 22 | 7, 2 << 22 | 8, 3 << 22 | 9)
FILES = ("a", "b", "c", "d")
READ, APPEND, UPDATE, REPLACE = 0, O_WRONLY | O_APPEND, O_RDWR, O_RDWR | O_TRUNC
WAYS = (READ, READ, NEW, APPEND, UPDATE, REPLACE)


class Step(NamedTuple):
    """A process opens a file in some way, closes a descriptor, or renames a file."""

    process: int
    what: str
    file: str = "a"
    way: int = READ
    to: str = "b"  # the new name
    fd: int = 3


@dataclass
class Content:
    """What a file holds: the names of all that went into it."""

    held: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)  # that it had before


class Model:
    """Data that may have flowed, from the first step to the last."""

    def __init__(self) -> None:
        self.files: defaultdict[str, Content] = defaultdict(Content)
        self.last: dict[str, Content] = {}  # that was written under a name
        self.taken: dict[int, set[str]] = {process: set() for process in PROCESSES}
        self.open: dict[tuple[int, int], tuple[set[str], int, Content, Content]] = {}

    def take(self, step: Step) -> None:
        """Take a step, and let data flow as long as it changes something."""
        key = (step.process, step.fd)
        if step.what == "open":
            self._open(step, key)
        elif step.what == "close":
            self.open.pop(key, None)
        else:
            self._rename(step)
        while self._flow():
            pass

    def _open(self, step: Step, key: tuple[int, int]) -> None:
        content = self.files[step.file]
        if step.way & O_TRUNC:
            content.held.clear()
            content.names.clear()
        if step.way & 3:
            self.last[step.file] = content
        self.open[key] = ({step.file, *content.names}, step.way, content, content)

    def _rename(self, step: Step) -> None:
        moved = self.files.pop(step.file, Content())
        if step.file in self.last:
            self.last[step.file] = Content(set(moved.held), set(moved.names))
        before = Content(set(moved.held))  # what a reader keeps, a writer goes on
        for key, (own, way, read, written) in self.open.items():
            self.open[key] = (own, way, before if read is moved else read, written)
        moved.names.add(step.file)
        self.files[step.to] = self.last[step.to] = moved

    def _flow(self) -> bool:
        before = sum(map(len, self.taken.values())), self._n_held()
        for (process, _), (own, way, read, written) in self.open.items():
            if way & 3 != O_WRONLY:
                self.taken[process] |= own | read.held
            if way & 3:
                written.held |= self.taken[process]
        return before != (sum(map(len, self.taken.values())), self._n_held())

    def _n_held(self) -> int:
        return sum(len(written.held) for _, _, _, written in self.open.values())

    def made_of(self, file: str) -> set[str]:
        """Return what went into the last content of a file."""
        last = self.last.get(file, Content())
        return (last.held | last.names) - {file}


def expected(steps: Iterable[Step]) -> dict[str, set[str]]:
    """Return what each file was made of, by the model."""
    model = Model()
    for step in steps:
        model.take(step)
    return {file: model.made_of(file) for file in FILES}


def report_of(steps: Iterable[Step]) -> TraceBuilder:
    """Return the trace of a history."""
    t = shell()
    for process in PROCESSES:
        t.fork(SH, process).exec(process, "/bin/tool", ["tool", str(process)], cwd="/w")
    for step in steps:
        if step.what == "open":
            t.open(step.process, f"/w/{step.file}", flags=step.way, fd=step.fd)
        elif step.what == "close":
            t.close(step.process, step.fd)
        else:
            t.rename(step.process, f"/w/{step.file}", f"/w/{step.to}")
    for process in PROCESSES:
        t.exit(process)
    return t.exit(SH)


def found(folder: Path, steps: Sequence[Step]) -> dict[str, set[str]]:
    """Return what each file was made of, by the engine."""
    d = Dependencies(database_of(folder, report_of(steps).trace()))
    known = [file for file in FILES if d.image.find_path(os.fsencode(f"/w/{file}")) >= 0]
    return {file: names(d, f"/w/{file}") if file in known else set() for file in FILES}


def one_after_another(uses: Sequence[Step]) -> list[Step]:
    """Close each file before anything else happens; leave out what the kernel refuses.

    A process reads a file once between two writes: more often counts as once for all of that time.
    """
    steps: list[Step] = []
    existing = set(FILES)
    have_read: defaultdict[int, set[str]] = defaultdict(set)
    for use in uses:
        known, is_rename = have_read[use.process], use.what == "rename"
        only_reads = not is_rename and use.way == READ
        if use.file not in existing and (is_rename or use.way != NEW):
            continue
        if use.file in known and (is_rename or only_reads):
            continue
        steps += [use] if is_rename else [use, use._replace(what="close")]
        if only_reads:
            known.add(use.file)
            continue
        known.clear()
        existing.discard(use.file)
        existing.add(use.to if is_rename else use.file)
    return steps


opens = st.builds(
    lambda process, file, way, fd: Step(process, "open", file, way, fd=fd),
    st.sampled_from(PROCESSES),
    st.sampled_from(FILES),
    st.sampled_from(WAYS),
    st.sampled_from([3, 4, 5]),
)
renames = st.builds(
    lambda process, pair: Step(process, "rename", pair[0], to=pair[1]),
    st.sampled_from(PROCESSES),
    st.sampled_from(list(itertools.permutations(FILES, 2))),
)
QUICK = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUICK
@given(st.lists(st.one_of(opens, opens, opens, renames), max_size=16))
def test_uses_one_after_another_give_what_went_into_each_content(
    tmp_path: Path, uses: list[Step]
) -> None:
    steps = one_after_another(uses)
    assert found(tmp_path, steps) == expected(steps)


closes = st.builds(
    lambda process, fd: Step(process, "close", fd=fd),
    st.sampled_from(PROCESSES),
    st.sampled_from([3, 4, 5]),
)


@QUICK
@given(st.lists(st.one_of(opens, opens, closes, closes, renames), max_size=20))
def test_nothing_is_missing_when_uses_overlap(tmp_path: Path, steps: list[Step]) -> None:
    engine, model = found(tmp_path, steps), expected(steps)
    assert {file: model[file] - engine[file] for file in FILES} == {file: set() for file in FILES}


# ---- one thing each ------------------------------------------------------------------------------


def test_a_file_written_again_by_one_process_is_another_file_to_who_read_the_first(
    opened: Opened,
) -> None:
    t = shell().use(SH, "/w/sys", flags=NEW)
    command(t, PROCESSES[0], "cp sys out", "sys", "out")
    d = opened(t.use(SH, "/w/late").use(SH, "/w/sys", flags=NEW).exit(SH))
    assert (names(d, "/w/out"), names(d, "/w/sys")) == ({"sys"}, {"late"})
    assert users(d, "/w/late") == {"sys"}


def test_what_is_appended_later_is_not_in_a_copy(opened: Opened) -> None:
    t = shell().use(SH, "/w/in").use(SH, "/w/log", flags=APPEND)
    command(t, PROCESSES[0], "cp log out", "log", "out")
    t.use(SH, "/w/late").use(SH, "/w/log", flags=APPEND)
    d = opened(command(t, PROCESSES[1], "cp log end", "log", "end").exit(SH))
    assert (names(d, "/w/out"), names(d, "/w/end")) == ({"in", "log"}, {"in", "late", "log"})


def test_a_file_read_again_gives_its_new_content_to_later_outputs_alone(opened: Opened) -> None:
    t = shell()
    command(t, PROCESSES[0], "gen x", "x", "f").use(SH, "/w/f").use(SH, "/w/first", flags=NEW)
    command(t, PROCESSES[1], "gen y", "y", "f").use(SH, "/w/f").use(SH, "/w/second", flags=NEW)
    d = opened(t.exit(SH))
    assert (names(d, "/w/first"), names(d, "/w/second")) == ({"f", "x"}, {"f", "x", "y"})


def test_a_copy_of_a_descriptor_keeps_a_use_open(opened: Opened) -> None:
    t = shell()
    for name in ("one", "two"):  # { read; echo; } > out, twice
        t.open(SH, "/w/out", flags=NEW, fd=3).dup(SH, 3, 1).close(SH, 3)
        t.use(SH, f"/w/{name}").close(SH, 1)
        command(t, PROCESSES[name == "two"], f"cp out {name}", "out", f"of_{name}")
    d = opened(t.use(SH, "/w/three").exit(SH))
    assert names(d, "/w/of_one") == {"out", "one"}
    assert names(d, "/w/of_two") == {"out", "one", "two"}


def test_the_opens_of_later_uses_are_reported(opened: Opened) -> None:
    t = shell().use(SH, "/w/in").use(SH, "/w/out", flags=NEW).use(SH, "/w/in2")
    d = opened(t.use(SH, "/w/out", flags=NEW).exit(SH))
    closure = d.closures([d.image.find_path(b"/w/out")], Rules())[0]
    rows = {closure.graph.open_of(row) for row in closure.entered}
    assert [d.image["opens"]["path"][row] for row in rows] == [d.image.find_path(b"/w/out")]
    assert set(closure.entered) != rows  # the use is not the first


# ---- real shells ---------------------------------------------------------------------------------

HISTORIES = {
    "echo > sys; cp sys out; cp a late; read s < late; echo $s > sys": {"sys"},
    "echo >> log; cp log out; read s < a; echo $s >> log": {"log"},
    "read s < a; echo $s >> log; cp log out; read s < b; echo $s >> log": {"log", "a"},
    "for f in a b; do read s < $f; echo $s >> out; done": {"a", "b"},
    "exec 5>> out; echo >&5; read s < a; echo $s >&5": {"a"},
    "cp a out; sed -i s/a/z/ out; sort -o out out; cat b >> out": {"a", "b"},
    "cp a t; mv t out; cp out x; cp b t; mv t out; cp x y": {"t", "b"},
    "(read s < a; echo $s >> out) & (read s < b; echo $s >> out) & wait": {"a", "b"},
    "ar rc out a; ar r out b": {"a", "b"},
}


@pytest.mark.parametrize("script", HISTORIES)
def test_real_shells_make_what_they_read_until_then(script: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in "abc":
        (work / name).write_text(f"{name}\n")
    image = capture_database(tmp_path, ["bash", "-c", f"set -e; {script}; :"], work)
    paths = [Path(os.fsdecode(path)) for path in deps(Dependencies(image), [b"./out"], Rules())]
    inside = {path.name for path in paths if path.parent == work}
    assert {name for name in inside if not name.startswith(("sed", "st"))} == HISTORIES[script]
