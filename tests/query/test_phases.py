# SPDX-License-Identifier: Apache-2.0
"""Which commands belong to a configure run or a make, and what a configure run tried."""

from __future__ import annotations

from pathlib import Path

from databases import database_of
from timing.builds import WRITE, Story

from etrace.query.phases import Phases, Probe
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels

MAKE = ["make", "all"]


class Steps(Story):
    """Commands of 8 us, one after the other, by the name of their parent."""

    def __init__(self, *argv: str) -> None:
        super().__init__()
        self.n, self.now, self.upids = 0, 0, dict[str, int]()
        self.begin("top", *argv)

    def begin(self, name: str, *argv: str, parent: str = "") -> None:
        """Start a program, or without one a subshell."""
        self.n += 1
        upid = self.upids[name] = self.n << 22 | self.n
        if parent:
            self.at(self.now).fork(self.upids[parent], upid)
        if argv:
            self.at(self.now).exec(upid, f"/usr/bin/{argv[0]}", list(argv))
        self.now += 8

    def end(self, name: str, status: int = 0) -> None:
        """End a program."""
        self.at(self.now).exit(self.upids[name], status)
        self.now += 2

    def run(self, parent: str, *argv: str, writes: str = "", status: int = 0) -> None:
        """Run a program from start to end."""
        self.begin("it", *argv, parent=parent)
        if writes:
            self.at(self.now - 1).open(self.upids["it"], f"/src/{writes}", flags=WRITE)
        self.end("it", status)

    def probe(self, parent: str, *options: str, status: int = 0) -> None:
        """Write conftest.c, compile it below a subshell, remove it."""
        self.run(parent, "cat", "confdefs.h", writes="conftest.c")
        self.begin("eval", parent=parent)
        self.run("eval", "gcc", *options, "conftest.c", status=status)
        self.end("eval", status)
        self.run(parent, "rm", "-f", "conftest.c")


def phases_of(folder: Path, steps: Steps) -> Phases:
    """End the build and return its phases."""
    steps.end("top")
    return Phases(Commands(database_of(folder, steps.builder.trace())))


def named(phases: Phases) -> list[tuple[str, str]]:
    """Return (command, command that began its phase) in order of time."""
    labels, rows = Labels(phases.commands.image), phases.commands.rows
    return [
        (labels.of(row), labels.of(rows[phases.of[number]]) if phases.of[number] >= 0 else "")
        for number, row in enumerate(rows)
    ]


def probes_of(folder: Path, steps: Steps) -> list[Probe]:
    """Return the parts of the first phase of a build that ends."""
    phases = phases_of(folder, steps)
    return phases.probes(next(iter(phases.kinds)))


def test_a_make_is_a_phase_with_all_makes_below_it(tmp_path: Path) -> None:
    steps = Steps("sh", "-c", "make all")
    steps.begin("make", *MAKE, parent="top")
    steps.run("make", "make", "-C", "lib")
    steps.end("make")
    found = phases_of(tmp_path, steps)
    assert named(found) == [
        ("sh -c make all", ""), ("make all", "make all"), ("make", "make all")
    ]  # fmt: skip
    assert list(found.kinds.values()) == ["make"]


def test_what_configure_tries_with_make_belongs_to_configure(tmp_path: Path) -> None:
    steps = Steps(*MAKE)
    steps.begin("run", "sh", "./configure", parent="top")
    steps.run("run", "make", "-f", "conftest.make")
    steps.run("run", "bash", "./config.status")
    steps.end("run")
    found = phases_of(tmp_path, steps)
    assert [phase for _, phase in named(found)] == ["make all", *["sh configure"] * 3]
    assert [found.is_configure(number) for number in range(4)] == [False, True, True, True]
    assert not found.is_configure(-1)


def test_a_configure_script_below_another_is_a_phase_of_its_own(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.probe("top")
    steps.begin("lib", "bash", "lib/configure", parent="top")
    steps.probe("lib", "-c")
    steps.end("lib")
    found = phases_of(tmp_path, steps)
    assert [phase for _, phase in named(found)].count("bash configure") == 5
    assert [[part.what for part in found.probes(root)] for root in found.kinds] == [
        ["link"], ["compile"]
    ]  # fmt: skip


def test_what_only_names_a_configure_script_is_no_run_of_it(tmp_path: Path) -> None:
    steps = Steps("sh", "-c", "./configure")
    steps.run("top", "rm", "-f", "configure")
    steps.run("top", "chmod", "+x", "configure")
    assert not phases_of(tmp_path, steps).kinds


def test_cmake_and_meson_configure_unless_they_do_other_work(tmp_path: Path) -> None:
    steps = Steps("sh", "-c", "all of it")
    steps.run("top", "cmake", "-S", ".")
    steps.run("top", "python3.11", "/usr/bin/meson", "setup", "b")
    steps.run("top", "python3.11", "/usr/bin/scons", "-j2")
    for other in (["cmake", "-E", "echo"], ["cmake", "-S.", "--check-build-system", "M"],
                  ["meson", "compile"]):  # fmt: skip
        steps.run("top", *other)
    found = phases_of(tmp_path, steps)
    assert list(found.kinds.values()) == ["configure", "configure", "make"]
    assert [phase for _, phase in named(found)][4:] == ["", "", ""]


def test_a_probe_goes_from_one_source_to_the_next(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "uname", "-m")
    steps.probe("top", "-c")
    steps.probe("top", "-E", status=1)
    steps.run("top", "sed", "s/a/b/")
    steps.run("top", "rm", "-rf", "conftest*")
    found = probes_of(tmp_path, steps)
    assert [(p.what, p.result, p.n_commands, p.is_probe) for p in found] == [
        ("before the first probe", "", 1, False),
        ("compile", "succeeded", 3, True),
        ("preprocess", "failed (1)", 3, True),
        ("after the last probe", "", 2, False),
    ]
    assert [len(p.tried) for p in found] == [0, 3, 3, 0]
    assert [(p.start_ns, p.elapsed_ns) for p in found[:2]] == [(8_000, 8_000), (18_000, 38_000)]


def test_a_probe_that_runs_its_program_has_the_status_of_that(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "cat", writes="conftest.cc")
    steps.run("top", "g++", "-o", "conftest", "conftest.cc")
    steps.run("top", "./conftest", status=3)
    (found,) = probes_of(tmp_path, steps)
    assert (found.what, found.result) == ("link, run", "failed (3)")


def test_what_a_compiler_writes_begins_no_probe(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "cat", writes="conftest.c")
    steps.run("top", "gcc", "-S", "conftest.c", writes="conftest.s")
    steps.run("top", "gcc", "-c", "conftest.c", writes="conftest.o")
    (found,) = probes_of(tmp_path, steps)
    assert found.n_commands == 3


def test_a_test_without_a_compiler_is_a_probe_too(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "cat", writes="conftest.make")
    steps.run("top", "make", "-f", "conftest.make")
    (found,) = probes_of(tmp_path, steps)
    assert (found.what, found.result, found.is_probe) == ("no compiler", "", True)


def test_a_run_that_tried_nothing_has_no_probes(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "rm", "-f", "conftest.c")
    assert probes_of(tmp_path, steps) == []


def test_a_script_that_executes_itself_again_is_one_phase(tmp_path: Path) -> None:
    steps = Steps("sh", "./configure")
    steps.run("top", "test", "-x", "/bin/bash")
    steps.at(steps.now).exec(steps.upids["top"], "/bin/bash", ["bash", "./configure"])
    steps.now += 8
    steps.probe("top", "-c")
    found = phases_of(tmp_path, steps)
    assert {phase for _, phase in named(found)} == {"bash configure"}
    assert list(found.kinds.values()) == ["configure"]
    (root,) = found.kinds
    assert [part.what for part in found.probes(root)] == ["before the first probe", "compile"]
