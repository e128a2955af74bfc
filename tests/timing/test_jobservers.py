# SPDX-License-Identifier: Apache-2.0
"""Which makes share job slots, and what that and processors do to a prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from timing.builds import US, Story

from etrace.timing.jobservers import UNLIMITED, Jobservers, named_jobs
from etrace.timing.processes import Processes
from etrace.timing.what_if import predict

COMMANDS = [
    ("make", None),
    ("make -j4", 4),
    ("make -j 4 all", 4),
    ("make -sj4", 4),
    ("make -kj 4", 4),
    ("make -j", UNLIMITED),
    ("make -j all", UNLIMITED),
    ("make --jobs=4", 4),
    ("make --jobs 4", 4),
    ("make --jobs", UNLIMITED),
    ("make -j2 -j8", 8),
    ("make -j2 --jobserver-auth=3,4", 2),
    ("make -C -j4", None),
    ("make -f -j4 -j2", 2),
    ("make -Cobj4", None),
    ("make -Oj4", None),
    ("make -- -j4", None),
    ("make -j99999999999999999999999", 999999999999999999),
    ("make -j0", None),
]


@pytest.mark.parametrize(("words", "n_jobs"), COMMANDS)
def test_the_number_of_jobs_is_read_as_make_reads_it(words: str, n_jobs: int | None) -> None:
    assert named_jobs([word.encode() for word in words.split()]) == n_jobs


@pytest.mark.parametrize(
    ("words", "n_jobs"),
    [("ninja -j4", 4), ("ninja -vj4", 4), ("ninja -k 4", None), ("ninja -w -j4", None)],
)
def test_the_number_of_jobs_of_ninja(words: str, n_jobs: int | None) -> None:
    argv = [word.encode() for word in words.split()]
    assert named_jobs(argv, is_ninja=True) == n_jobs


# ---- which share ----

TOP = 1 << 22 | 1
MAKES = tuple(n << 22 | n for n in (2, 3))
Move = Callable[[TraceBuilder], None]


def _nested(
    top: str, below: str, begins: tuple[int, int] = (0, 0), n_jobs: int = 1, cpu_us: int = 0
) -> bytes:
    """Two makes below one, each with `n_jobs` jobs at once that take 100 us."""
    story, moves = Story(), list[tuple[int, Move]]()
    _start(story.at(0), 0, TOP, top)
    for make, begin in zip(MAKES, begins, strict=True):
        jobs = [make + n * (100 << 22 | 100) for n in range(1, n_jobs + 1)]
        moves.append((begin, partial(_start, parent=TOP, upid=make, command=below)))
        moves += [(begin, partial(_start, parent=make, upid=job, command="cc")) for job in jobs]
        moves += [(begin + 100, partial(_end, upid=job, cpu_us=cpu_us)) for job in jobs]
        moves.append((begin + 100, partial(_end, upid=make)))
    for time_us, move in sorted(moves, key=itemgetter(0)):
        move(story.at(time_us))
    story.at(begins[1] + 100).exit(TOP)
    return story.builder.trace()


def _start(trace: TraceBuilder, parent: int, upid: int, command: str) -> None:
    argv = command.split()
    if parent:
        trace.fork(parent, upid)
    trace.exec(upid, f"/usr/bin/{argv[0]}", argv)


def _end(trace: TraceBuilder, upid: int, cpu_us: int = 0) -> None:
    if cpu_us:
        used = {"user": cpu_us * US, "system": 0, "maxrss": 4096, "rchar": 1, "wchar": 1}
        trace.event(upid, "Usage", **used, voluntary=0, forced=1).at(trace.clock_ns)
    trace.exit(upid)


def _slots(tmp_path: Path, top: str, below: str) -> Jobservers:
    image = database_of(tmp_path, _nested(top, below))
    return Jobservers(image, Processes(image))


def test_makes_without_a_number_take_slots_from_the_one_above(tmp_path: Path) -> None:
    found = _slots(tmp_path, "make -j2", "make -C a")
    assert found.sizes() == [2]
    assert set(found.of_job.values()) == {0}
    assert len(found.of_job) == 2  # the compilers: the makes pass theirs on
    assert found.sizes(8) == [8]


def test_makes_with_a_number_have_slots_of_their_own_and_hold_one(tmp_path: Path) -> None:
    found = _slots(tmp_path, "make -j2", "make -j3")
    assert found.sizes() == [2, 3, 3]
    assert sorted(found.of_job.values()) == [0, 0, 1, 2]
    assert found.sizes(8) == [8, 8, 8]


@pytest.mark.parametrize(
    ("top", "below", "sizes"),
    [
        ("make -j2", "make -j1", [8, 1, 1]),  # serial because its recipe says so
        ("make -j1", "make -j1", [8, 8, 8]),  # passed on by $(MFLAGS)
        ("make -j2", "ninja", [8, 8, 8]),
        ("ninja", "make", [8, 8, 8]),
    ],
)
def test_what_another_number_of_jobs_changes(
    tmp_path: Path, top: str, below: str, sizes: list[int]
) -> None:
    image = database_of(tmp_path, _nested(top, below))
    assert Jobservers(image, Processes(image)).sizes(8) == sizes


# ---- what it does ----


def test_makes_with_slots_of_their_own_run_at_once(tmp_path: Path) -> None:
    own = _nested("make -j2", "make -j2", n_jobs=2)
    found = predict(database_of(tmp_path, own), {})
    assert (found.traced_jobs, found.traced_ns, found.simulated_ns) == (4, 100 * US, 100 * US)


def test_makes_that_share_slots_do_not(tmp_path: Path) -> None:
    shared = _nested("make -j2", "make", n_jobs=2)
    assert predict(database_of(tmp_path, shared), {}).simulated_ns == 200 * US


def test_a_make_holds_a_slot_of_the_one_above(tmp_path: Path) -> None:
    serial = _nested("make -j1", "make -j2", begins=(0, 100), n_jobs=2)
    found = predict(database_of(tmp_path, serial), {})
    assert (found.traced_ns, found.simulated_ns) == (200 * US, 200 * US)
    assert predict(database_of(tmp_path, serial), {}, 2).ordered_ns == 100 * US


def test_what_computes_waits_for_a_processor(tmp_path: Path) -> None:
    """Four jobs at once on one processor, of 100 us with 25 us of CPU time each."""
    image = database_of(tmp_path, _nested("make", "make -j2", n_jobs=2, cpu_us=25))
    found = predict(image, {})
    assert (found.traced_processors, found.simulated_ns) == (1, 100 * US)
    asked = predict(image, {}, 2)
    assert (asked.n_processors, asked.ordered_ns) == (2, 50 * US)
