# SPDX-License-Identifier: Apache-2.0
"""The critical path of builds whose times were worked out by hand."""

from __future__ import annotations

from pathlib import Path

from databases import database_of, write_processed_lua
from libetrace.image.file import Image
from timing.builds import FIRST, LINK, MAKE, SECOND, US, Story, a_pipeline, two_objects_and_a_link

from etrace.nfsdb.store import open_database
from etrace.query.rows.labels import Labels
from etrace.timing.critical_path import Blocked, CriticalPath, Step, find_critical_path
from etrace.timing.recipe_order import NOT_READ


def shown(image: Image, step: Step) -> tuple[object, ...]:
    """Return a step as (name, from, to, work in us, reason, file)."""
    times = (step.start_ns // US, step.end_ns // US, step.work_ns // US)
    path = image.path_string(step.path).decode() if step.path >= 0 else ""
    return (Labels(image).of(step.execution), *times, step.reason and step.reason.name, path)


def by_name(image: Image, found: CriticalPath) -> dict[str, int]:
    """Return the slack of each program in us."""
    labels, programs = Labels(image), image["executions"]["binary"]
    rows = (row for row, binary in enumerate(programs) if binary >= 0)
    return {labels.of(row): found.slack_ns[row] // US for row in rows}


def test_a_link_waits_for_the_longer_of_two_compilations(tmp_path: Path) -> None:
    image = database_of(tmp_path, two_objects_and_a_link())
    found = find_critical_path(image)
    assert [shown(image, step) for step in found.steps] == [
        ("make prog", 0, 100, 100, None, ""),
        ("gcc b.c", 400, 1000, 600, "FORK", ""),
        ("ld prog", 1000, 1200, 200, "FILE", "/src/b.o"),
        ("make prog", 1200, 1210, 10, "CHILD", ""),
    ]
    assert (found.path_ns, found.elapsed_ns) == (910 * US, 1210 * US)
    assert found.speedup_limit == 1210 / 910
    assert by_name(image, found) == {"make prog": 0, "gcc a.c": 300, "gcc b.c": 0, "ld prog": 0}


def test_a_job_that_was_ready_waited_for_a_job_slot(tmp_path: Path) -> None:
    found = find_critical_path(database_of(tmp_path, two_objects_and_a_link()))
    child, slot = Blocked("child", 1100 * US), Blocked("job slot", 300 * US)
    assert [step.blocked for step in found.steps] == [(child,), (slot,), (), ()]


def test_a_scheduler_works_when_the_last_of_its_jobs_has_ended(tmp_path: Path) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make", "all"])
    story.job(MAKE, FIRST, (100, 900), ["gcc", "-c", "long.c"])
    story.job(MAKE, SECOND, (110, 200), ["gcc", "-c", "short.c"])
    story.job(MAKE, LINK, (1000, 1100), ["ld"])
    story.at(1110).exit(MAKE)
    image = database_of(tmp_path, story.builder.trace())
    work, labels = find_critical_path(image).work_ns, Labels(image)
    assert {labels.of(row): ns // US for row, ns in enumerate(work) if ns}["make all"] == 210


def test_the_end_of_a_pipeline_waits_for_its_begin(tmp_path: Path) -> None:
    image = database_of(tmp_path, a_pipeline())
    found = find_critical_path(image)
    assert [shown(image, step) for step in found.steps] == [
        ("sh -c gen | sort", 0, 100, 100, None, ""),
        ("gen", 100, 700, 600, "FORK", ""),
        ("sort", 700, 800, 100, "PIPE", ""),
        ("sh -c gen | sort", 800, 820, 20, "CHILD", ""),
    ]
    assert [step.blocked for step in found.steps] == [
        (Blocked("child", 690 * US),),
        (),
        (Blocked("pipe", 590 * US),),
        (),
    ]
    assert (found.path_ns, found.elapsed_ns) == (820 * US, 820 * US)


def test_the_lua_build_waits_for_its_largest_object(tmp_path: Path) -> None:
    image = open_database(write_processed_lua(tmp_path / "lua"))
    found = find_critical_path(image)
    labels = Labels(image)
    names = [labels.of(step.execution) for step in found.steps]
    chain = ["make all", "gcc lvm.c", "cc1 lvm.c", "as lvm.o", "ar liblua.a", "ranlib liblua.a",
             "gcc lua", "collect2 lua", "ld lua"]  # fmt: skip
    assert [name for name in dict.fromkeys(names) if name in chain] == chain
    files = [image.path_string(s.path).rpartition(b"/")[2] for s in found.steps if s.path >= 0]
    assert files == [b"lvm.o", b"liblua.a", b"liblua.a"]
    assert found.path_ns < found.elapsed_ns
    assert sum(step.work_ns for step in found.steps) == found.path_ns
    assert all(found.slack_ns[row] == 0 for row in found.executions)


def test_a_reader_that_its_writer_outlived_did_no_work_of_its_own(tmp_path: Path) -> None:
    sh, gen, sort = MAKE, FIRST, SECOND
    story = Story()
    story.at(0).exec(sh, "/usr/bin/gcc", ["gcc", "-pipe", "-c", "a.c"])
    story.at(50).pipe(sh, 3, 4)
    story.at(100).fork(sh, gen)
    story.at(100).dup(gen, 4, 1).close(gen, 3).close(gen, 4).exec(gen, "/usr/lib/cc1", ["cc1"])
    story.at(110).fork(sh, sort)
    story.at(110).dup(sort, 3, 0).close(sort, 3).close(sort, 4)
    story.at(110).exec(sort, "/usr/bin/as", ["as"]).close(sh, 3).close(sh, 4)
    for upid, end in ((sort, 790), (gen, 800), (sh, 820)):
        story.at(end).exit(upid)
    image = database_of(tmp_path, story.builder.trace())
    work, labels = find_critical_path(image).work_ns, Labels(image)
    names = {labels.of(row): work[row] // US for row in (3, 5)}
    assert names == {"cc1": 700, "as": 0}


def test_a_job_waits_for_the_program_that_it_runs(tmp_path: Path) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make", "out"])
    story.job(MAKE, FIRST, (100, 400), ["gcc", "-o", "gen"], (), ("/usr/bin/gen",))
    story.job(MAKE, SECOND, (400, 1000), ["gen"], (), ("/src/out",))
    story.at(1010).exit(MAKE)
    image = database_of(tmp_path, story.builder.trace())
    found = find_critical_path(image)
    files = [image.path_string(step.path) for step in found.steps if step.path >= 0]
    assert files == [b"/usr/bin/gen"]
    assert (found.path_ns, found.elapsed_ns) == (1010 * US, 1010 * US)


def test_what_a_thread_executes_is_waited_for(tmp_path: Path) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/bin/sh", ["sh", "-c", "tool; cp"])
    story.at(0).fork(MAKE, FIRST).exec(FIRST, "/usr/bin/tool", ["tool"])
    story.at(10).thread(FIRST, SECOND)
    story.at(20).exit(FIRST).exec(SECOND, "/bin/sleep", ["sleep", "1"])
    story.at(900).exit(SECOND)
    story.at(910).exit(MAKE)
    image = database_of(tmp_path, story.builder.trace())
    steps = find_critical_path(image).steps
    assert "sleep 1" in [Labels(image).of(step.execution) for step in steps]


def test_without_rules_the_path_is_a_lower_bound(tmp_path: Path) -> None:
    found = find_critical_path(database_of(tmp_path, two_objects_and_a_link()))
    assert found.is_lower_bound
    assert list(found.unknown.values()) == [NOT_READ]


def test_a_make_with_one_job_needs_no_rules(tmp_path: Path) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    story.job(MAKE, FIRST, (100, 900), ["gcc", "-c", "a.c"])
    story.at(1000).exit(MAKE)
    assert not find_critical_path(database_of(tmp_path, story.builder.trace())).is_lower_bound
