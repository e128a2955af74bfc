# SPDX-License-Identifier: Apache-2.0
"""Two builds whose differences are known."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from databases import database_of
from libetrace.image.file import Image
from report.two_builds import MS, Recipe
from timing.builds import a_pipeline

from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.query import summary
from etrace.report.comparison import build as of_build
from etrace.report.comparison.build import Build
from etrace.report.comparison.compare import CPU_TIME, WORK, Comparison, Cost, compare
from etrace.timing.critical_path import find_critical_path

Compared = Callable[..., Comparison]


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    """Compare a build in one directory with one in another, each as a Recipe of some values."""

    def made(name: str, values: dict[str, Any]) -> Image:
        root = tmp_path / name / "src"
        root.mkdir(parents=True)
        return Recipe(root, **values).write(tmp_path / name / "database")

    def compared(
        before: dict[str, Any], after: dict[str, Any], runs: Sequence[dict[str, Any]] = ()
    ) -> Comparison:
        images = [made(f"a{n}", values) for n, values in enumerate((before, *runs))]
        return compare(images[0], made("b", after), (images[1:], ()))

    return compared


def changes(costs: Sequence[Cost]) -> dict[str, tuple[int, float]]:
    """Return names of commands with their number in the second build and added ms."""
    return {c.name: (c.n[1], (c.time.change or 0) / MS) for c in costs if c.time.change}


def test_a_build_in_another_directory_is_the_same(compared: Compared) -> None:
    found = compared({}, {})
    assert {name: each.change for name, each in found.figures.items()} == dict.fromkeys(
        ("wall", "cpu", "critical-path", "size", "dependencies", "commands", "failed"), 0
    )
    lists = (found.failed, found.built, found.no_longer_built, found.gone, found.new, found.headers)
    assert not any(lists)
    assert not any(changes(each) for each in (found.programs, found.targets, found.costs))
    assert [each.is_changed for each in found.modules] == [False]


def test_figures_are_those_of_summary_and_critical_path(tmp_path: Path) -> None:
    image = Recipe(tmp_path).write(tmp_path / "database")
    figures = compare(image, image).figures
    page, path = summary.summarise(image).totals, find_critical_path(image)
    expected = {
        "wall": page.elapsed_ns, "cpu": page.cpu_ns, "critical-path": path.path_ns,
        "commands": page.commands, "failed": page.failed,
    }  # fmt: skip
    assert {name: figures[name].after for name in expected} == expected


def test_what_takes_long_is_found_once_for_each_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Recipe(tmp_path).write(tmp_path / "database")
    calls = Counter[str]()

    def counted(name: str) -> None:
        own = getattr(of_build, name)

        def call(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return own(*args, **options)

        monkeypatch.setattr(of_build, name, call)

    for name in ("totals", "find_critical_path", "includes", "sized_modules"):
        counted(name)
    compare(image, image)
    assert calls == dict.fromkeys(("totals", "find_critical_path", "includes", "sized_modules"), 2)


def test_commands_have_no_name_until_it_is_asked_for(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, name = list[int](), Build.name

    def noted(build: Build, row: int) -> str:
        named.append(row)
        return name(build, row)

    monkeypatch.setattr(Build, "name", noted)
    found = compared({}, {"sources": {"a": 110, "b": 230}})
    n_before = len(named)
    assert [cost.name for cost in found.costs[:2]] == ["cc1 b.c", "cc1 a.c"]
    assert len(named) == n_before + 2


def test_commands_of_equal_change_are_sorted_by_name(compared: Compared) -> None:
    found = compared({"sources": dict.fromkeys("cab", 1)}, {"sources": dict.fromkeys("bca", 1)})
    names = [cost.name for cost in found.costs]
    assert names == sorted(names)


def test_a_slower_command_is_found_although_its_flags_differ(compared: Compared) -> None:
    found = compared({}, {"flag": "-O3", "sources": {"b": 200, "a": 130}})  # other order, too
    assert changes(found.costs) == {"cc1 a.c": (1, 30)}
    assert changes(found.programs) == {"cc1": (2, 30)}
    assert (found.new, found.gone) == ((), ())
    assert found.figures["cpu"].change == 30 * MS
    assert found.times == CPU_TIME


def test_without_usage_times_are_those_of_the_work(compared: Compared) -> None:
    found = compared({"with_usage": False}, {"with_usage": False, "sources": {"a": 100, "b": 210}})
    assert found.figures["cpu"].change is None
    assert found.times == WORK
    assert changes(found.costs) == {"cc1 b.c": (1, 10)}
    assert changes(found.programs) == {"cc1": (2, 10)}


def test_without_usage_a_program_does_not_count_its_wait_for_a_pipe(tmp_path: Path) -> None:
    image = database_of(tmp_path, a_pipeline())
    found = compare(image, image)
    times = {each.name: each.time.after for each in found.programs}
    assert times["sort"] == {each.name: each.time.after for each in found.costs}["sort"]
    assert (times["sort"] or 0) < 200_000  # of 690 us


def test_repeated_commands_count_as_one(compared: Compared) -> None:
    found = compared({"probes": 3}, {"probes": 5})
    assert changes(found.costs) == {}
    assert [(each.name, each.n) for each in found.new] == [("probe", (0, 2))]
    assert found.figures["commands"].change == 2


def test_what_was_built_newly_and_no_more(compared: Compared) -> None:
    found = compared({}, {"sources": {"a": 100, "c": 300}})
    assert (found.built, found.no_longer_built) == (("c.o",), ("b.o",))
    assert [each.name for each in found.new] == ["cc1 c.c"]
    assert [each.name for each in found.gone] == ["cc1 b.c"]


def test_modules_differ_in_size_dependencies_and_headers(compared: Compared) -> None:
    found = compared({}, {"n_bytes": 1200, "headers": ("a.h", "b.h")})
    (module,) = found.modules
    assert (module.name, module.size.change, module.size.ratio) == ("prog", 200, 0.2)
    assert (module.dependencies.change, module.headers.change) == (1, 1)
    assert found.figures["size"].change == 200
    assert found.figures["dependencies"].change == 1
    assert [(h.path, h.after - h.before) for h in found.headers] == [(b"b.h", 200)]


def test_a_module_of_another_name_is_another(compared: Compared) -> None:
    found = compared({}, {"program": "other"})
    figures = {m.name: (m.size.before, m.size.after) for m in found.modules}
    assert figures == {"prog": (1000, None), "other": (None, 1000)}


def test_what_failed_newly_is_found_with_what_made_the_build_fail(compared: Compared) -> None:
    found = compared({"probes": 2}, {"probes": 2, "failing": ("b", "probe")})
    assert [(each.name, each.status, each.is_cause) for each in found.failed] == [
        ("cc1 b.c", 1, True), ("make", 2, False), ("probe", 1, False)
    ]  # fmt: skip
    assert [each.written for each in found.failed] == [("b.o:1: error: ``` <b>",), (), ()]
    assert found.figures["failed"].change == 3
    assert found.no_longer_built == ("b.o", "prog")


def test_what_failed_before_did_not_fail_newly(compared: Compared) -> None:
    assert compared({"failing": ("b",)}, {"failing": ("b",)}).failed == ()


def test_names_of_a_build_started_above_are_those_of_its_directory(tmp_path: Path) -> None:
    images = []
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        images.append(Recipe(root, started_in="..").write(tmp_path / f"{name}.database"))
    found = compare(images[0], images[1])
    assert (found.new, found.gone) == ((), ())
    assert {each.n for each in found.costs} == {(1, 1)}


def test_runs_bound_the_noise(compared: Compared) -> None:
    names = [f"s{n}" for n in range(20)]
    usual = dict.fromkeys(names, 100)
    runs = [{"sources": usual | {"s3": 110}}, {"sources": usual | {"s4": 95}}]
    found = compared({"sources": usual}, {"sources": usual | {"s5": 112, "s6": 150}}, runs)
    assert found.n_runs == (3, 1)
    assert [each.name for each in found.changed(1)] == ["cc1 s6.c"]
    assert found.changed(-1) == []
    assert found.figures["cpu"].before == pytest.approx(
        (2 * 2060 + 2060 + 10 - 5) / 3 * MS, rel=1e-6
    )
    assert found.figures["failed"].noise is None
    assert not found.figures["cpu"].is_noise


def test_a_change_within_the_noise_of_the_runs_is_noise(compared: Compared) -> None:
    runs = [{"sources": {"a": 130, "b": 200}}, {"sources": {"a": 100, "b": 240}}]
    found = compared({}, {"sources": {"a": 120, "b": 210}}, runs)
    assert found.changed(1) == found.changed(-1) == []
    assert found.figures["cpu"].is_noise


@pytest.mark.parametrize("is_killed", [False, True])
def test_builds_are_read_at_once_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    images, parent, find = [], os.getpid(), Build.find
    for name, sources in (("a", {"a": 100, "b": 200}), ("b", {"a": 150, "c": 10})):
        (tmp_path / name).mkdir()
        images.append(Recipe(tmp_path / name, sources=sources).write(tmp_path / f"{name}.db"))
    expected = compare(images[0], images[1])
    found_in = []

    def find_or_end(build: Build) -> Any:
        if is_killed and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        found_in.append(build.image.path.parent.name)
        return find(build)

    monkeypatch.setattr(of_build, "MANY", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(Build, "find", find_or_end)
    assert compare(images[0], images[1]) == expected
    assert found_in == ["b.db"]  # that of the other was in its own process


def test_an_error_of_a_build_that_another_process_reads_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    image = Recipe(tmp_path / "a").write(tmp_path / "a.db")
    other = open_database(image.path.parent)

    def damaged(of: Image) -> Any:
        if of is image:
            raise EtraceError("damaged")
        return find_critical_path(of)

    monkeypatch.setattr(of_build, "MANY", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(of_build, "find_critical_path", damaged)
    with pytest.raises(EtraceError, match="damaged"):
        compare(image, other)
