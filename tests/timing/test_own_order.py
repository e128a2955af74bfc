# SPDX-License-Identifier: Apache-2.0
"""Programs that order work themselves: the path through them is an upper bound, and said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from databases import capture_database, database_of
from libetrace.image.file import Image
from timing.builds import FIRST, LINK, MAKE, SECOND, Story, two_objects_and_a_link

from etrace.query.phases import Phases
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.timing.critical_path import CriticalPath, doubts, find_critical_path
from etrace.timing.own_order import OwnOrder
from etrace.timing.path_groups import group_path

THREADS = [n << 22 | n for n in range(11, 13)]


def trace_of(
    program: str, spans: tuple[tuple[int, int], ...], *, n_threads: int = 0, is_chain: bool = False
) -> bytes:
    """Return `program` from 0 to 1000 us with children at these times; the last is a linker.

    In a chain each child reads what the one before it wrote.
    """
    story = Story()
    story.at(0).exec(MAKE, f"/usr/bin/{program}", [program, "build"])
    for thread in THREADS[:n_threads]:
        story.at(1).thread(MAKE, thread)
    upids = (FIRST, SECOND, LINK)
    events = sorted(zip(spans, upids, strict=False))
    for at, (span, upid) in enumerate(events):
        reads = (f"/src/{at - 1}",) if is_chain and at else ()
        story.job(MAKE, upid, span, ["compile", f"{at}.x"], reads, (f"/src/{at}",))
    for thread in THREADS[:n_threads]:
        story.at(999).exit(thread)
    story.at(1000).exit(MAKE)
    return story.builder.trace()


def path_of(tmp_path: Path, trace: bytes) -> tuple[Image, CriticalPath]:
    image = database_of(tmp_path, trace)
    return image, find_critical_path(image)


ONE_BY_ONE = ((100, 300), (310, 600), (610, 900))
AT_ONCE = ((100, 500), (200, 600), (600, 900))


def test_children_at_once_are_an_order_of_the_program_s_own(tmp_path: Path) -> None:
    image, found = path_of(tmp_path, trace_of("go", AT_ONCE))
    assert found.is_upper_bound
    (inside,) = found.inside
    assert (inside.order, inside.n, inside.path_ns) == (OwnOrder.PROGRAMS, 3, found.path_ns)
    assert Labels(image).program(inside.execution) == "go"
    where = "below go, which started 3 processes in an order of its own"
    assert list(doubts(image, found)) == [
        (found.path_ns, f"{where}: what they wait for is not known")
    ]


def test_a_process_that_ran_no_program_is_named_by_its_number(tmp_path: Path) -> None:
    story = Story()
    for number, (begin, end) in enumerate(AT_ONCE, 2):
        story.job(MAKE, number << 22 | number, (begin, end), ["cc1", f"{number}.c"])
    story.at(910).exit(MAKE)
    image, found = path_of(tmp_path, story.builder.trace())
    assert [where.partition(",")[0] for _, where in doubts(image, found)] == ["below process 1"]
    groups = group_path(found, Phases(Commands(image)), Labels(image))
    assert [each.program for each in groups] == ["cc1", "(fork)"]


def test_one_by_one_is_an_order_of_its_own_when_the_program_has_threads(tmp_path: Path) -> None:
    _, found = path_of(tmp_path, trace_of("go", ONE_BY_ONE, n_threads=2))
    assert [each.order for each in found.inside] == [OwnOrder.PROGRAMS]
    assert found.is_upper_bound


def test_a_chain_of_files_is_known(tmp_path: Path) -> None:
    _, found = path_of(tmp_path, trace_of("ant", ONE_BY_ONE, n_threads=2, is_chain=True))
    (inside,) = found.inside
    assert inside.order is OwnOrder.THREADS
    assert inside.path_ns == 220_000  # what the program does itself


def test_threads_are_an_order_of_the_program_s_own(tmp_path: Path) -> None:
    image, found = path_of(tmp_path, trace_of("java", (), n_threads=2))
    assert found.is_upper_bound
    assert [where for _, where in doubts(image, found)] == [
        "in java, which has 3 threads: what they wait for is not known"
    ]


@pytest.mark.parametrize(
    "trace",
    [
        two_objects_and_a_link(),
        trace_of("make", AT_ONCE, n_threads=2),
        trace_of("bash", AT_ONCE),
        trace_of("gcc", AT_ONCE),
        trace_of("perl", ONE_BY_ONE),
        trace_of("go", ONE_BY_ONE[:1]),
        trace_of("go", ONE_BY_ONE, n_threads=1),
    ],
    ids=["make", "make at once", "shell", "driver", "script", "one child", "one thread"],
)
def test_an_order_that_is_known_is_no_upper_bound(tmp_path: Path, trace: bytes) -> None:
    image, found = path_of(tmp_path, trace)
    assert (found.inside, found.is_upper_bound, list(doubts(image, found))) == ((), False, [])


def piped(*, both_ways: bool) -> bytes:
    """`run` starts two children at once that share a pipe."""
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/run", ["run"])
    story.at(50).pipe(MAKE, 3, 4)
    for upid, closed in ((FIRST, 3), (SECOND, 4)):
        story.at(100).fork(MAKE, upid)
        if not both_ways:
            story.at(100).close(upid, closed)
        story.at(100).exec(upid, "/usr/bin/part", ["part"])
    story.at(110).close(MAKE, 3).close(MAKE, 4)
    for upid, end in ((FIRST, 500), (SECOND, 600), (MAKE, 610)):
        story.at(end).exit(upid)
    return story.builder.trace()


@pytest.mark.parametrize("both_ways", [False, True], ids=["pipeline", "jobserver"])
def test_the_parts_of_a_pipeline_are_one_but_a_jobserver_s_pipe_joins_nobody(
    tmp_path: Path, *, both_ways: bool
) -> None:
    _, found = path_of(tmp_path, piped(both_ways=both_ways))
    assert found.is_upper_bound == both_ways


def test_a_small_part_of_the_path_is_in_the_figures_and_not_in_the_head_line(
    tmp_path: Path,
) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/bin/sh", ["sh", "-c", "cc; ld.lld"])
    story.job(MAKE, FIRST, (0, 1900), ["cc1", "a.c"])
    story.at(1900).fork(MAKE, LINK).exec(LINK, "/usr/bin/ld.lld", ["ld.lld"])
    for thread in THREADS:
        story.at(1900).thread(LINK, thread)
    for thread in THREADS:
        story.at(1990).exit(thread)
    story.at(2000).exit(LINK).exit(MAKE)
    _, found = path_of(tmp_path, story.builder.trace())
    assert [(each.order, each.path_ns) for each in found.inside] == [(OwnOrder.THREADS, 100_000)]
    assert not found.is_upper_bound


@pytest.mark.parametrize(("jobs", "is_known"), [("1", True), ("2", False)])
def test_xargs_with_several_jobs_orders_them_itself(
    tmp_path: Path, jobs: str, *, is_known: bool
) -> None:
    # each waits until the other has begun, so that two are at once for sure
    wait = "mkfifo a b 2>/dev/null; case $1 in 1) : > a; : < b;; 2) : < a; : > b;; esac"
    script = wait if jobs == "2" else "echo $1"
    command = ["xargs", "-a", str(tmp_path / "list"), "-n1", f"-P{jobs}", "sh", "-c", script, "sh"]
    (tmp_path / "list").write_text("1 2\n")
    found = find_critical_path(capture_database(tmp_path, command, tmp_path))
    assert found.is_upper_bound is not is_known
