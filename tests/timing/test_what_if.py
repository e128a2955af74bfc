# SPDX-License-Identifier: Apache-2.0
"""Predictions of builds whose times were worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from timing.builds import US, Story, two_directories, two_objects_and_a_link

from etrace.errors import UsageError
from etrace.timing.critical_path import find_critical_path
from etrace.timing.what_if import Prediction, predict

MAKE, CC = (n << 22 | n for n in (1, 2))


def test_two_jobs_compile_side_by_side(tmp_path: Path) -> None:
    found = predict(database_of(tmp_path, two_objects_and_a_link()), {}, 2)
    assert found == Prediction(
        traced_ns=1210 * US, traced_jobs=1, traced_processors=None, simulated_ns=1210 * US,
        n_jobs=2, n_processors=None, ordered_ns=910 * US, free_ns=910 * US,
        n_executions=4, n_unknown=4, most_ns=1210 * US, explained_ns=1210 * US,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("factors", "n_jobs", "us"),
    [
        ({}, None, 1210),
        ({}, 1, 1210),
        ({"gcc": 0.5}, None, 760),
        ({"gcc": 2}, 2, 100 + 1200 + 200 + 10),
        ({"gcc": 0, "ld": 0}, 1, 110),
        ({"make": 2, "ld": 0.5}, 8, 200 + 600 + 100 + 20),
    ],
)
def test_times_and_jobs_change_what_a_build_takes(
    tmp_path: Path, factors: dict[str, float], n_jobs: int | None, us: int
) -> None:
    image = database_of(tmp_path, two_objects_and_a_link())
    assert predict(image, factors, n_jobs).ordered_ns == us * US


def test_a_shell_orders_makes_that_share_no_file(tmp_path: Path) -> None:
    found = predict(database_of(tmp_path, two_directories()), {}, 2)
    assert (found.traced_ns, found.ordered_ns) == (650 * US, 650 * US)
    # before the jobs, both at once, sh between the makes, after the jobs
    assert found.free_ns == (10 + 300 + 10 + 10) * US


def test_the_traced_time_changes_as_the_simulated_one() -> None:
    found = Prediction(
        traced_ns=1000, traced_jobs=2, traced_processors=2, simulated_ns=800, n_jobs=4,
        n_processors=4, ordered_ns=400, free_ns=200, n_executions=8, n_unknown=0,
    )  # fmt: skip
    assert (found.change, found.predicted_ns, found.predicted_free_ns) == (0.5, 500, 250)


def test_jobs_without_a_rule_may_need_the_order_of_the_trace() -> None:
    found = Prediction(
        traced_ns=1000, traced_jobs=1, traced_processors=2, simulated_ns=800, n_jobs=4,
        n_processors=4, ordered_ns=400, free_ns=400, n_executions=8, n_unknown=0, most_ns=600,
    )  # fmt: skip
    assert (found.predicted_ns, found.predicted_most_ns) == (500, 750)


def test_a_program_that_did_not_run_is_an_error(tmp_path: Path) -> None:
    image = database_of(tmp_path, two_objects_and_a_link())
    with pytest.raises(UsageError, match="no execution of 'gc'") as caught:
        predict(image, {"gc": 2.0})
    assert caught.value.hint == "did you mean gcc?"


def _with_usage(user_us: int, n_voluntary: int, n_forced: int) -> bytes:
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    story.at(100).fork(MAKE, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    used = {"user": user_us * US, "system": 0, "maxrss": 4096, "rchar": 1, "wchar": 1,
            "voluntary": n_voluntary, "forced": n_forced}  # fmt: skip
    end: TraceBuilder = story.at(1100)
    end.event(CC, "Usage", **used).at(end.clock_ns).exit(CC)
    story.at(1100).exit(MAKE)
    return story.builder.trace()


CASES = [
    (800, 9, 1, 900), (300, 9, 1, 1100), (300, 1, 9, 400), (300, 0, 0, 400), (10, 1, 1, 1100),
    (10, 0, 1, 110),
]  # fmt: skip


@pytest.mark.parametrize(("user_us", "n_voluntary", "n_forced", "us"), CASES)
def test_cpu_time_counts_for_what_computes_and_elapsed_time_for_what_sleeps(
    tmp_path: Path, user_us: int, n_voluntary: int, n_forced: int, us: int
) -> None:
    found = predict(database_of(tmp_path, _with_usage(user_us, n_voluntary, n_forced)), {}, 1)
    assert (found.ordered_ns, found.n_unknown) == (us * US, found.n_executions - 1)


@pytest.mark.parametrize(
    ("n_voluntary", "n_forced", "reason"),
    [
        (0, 9, "busy processors"),
        (1, 9, "disk, lock or processors"),
        (1, 1, "disk, lock or processors"),
        (-1, -1, "disk, lock or processors"),
        (9, 1, "disk, lock or processors"),
    ],
)
def test_only_what_never_gave_its_cpu_up_waited_for_processors(
    tmp_path: Path, n_voluntary: int, n_forced: int, reason: str
) -> None:
    found = find_critical_path(database_of(tmp_path, _with_usage(300, n_voluntary, n_forced)))
    reasons = {blocked.by for step in found.steps for blocked in step.blocked}
    assert reasons == {"child", reason}


def _compiler_that_pipes(reader_ends_us: int) -> bytes:
    """`gcc -pipe` for 1000 us: cc1 computes for 800 of them, and `as` waits for what it writes."""
    story, (cc1, assembler) = Story(), (n << 22 | n for n in (3, 4))
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    story.at(0).fork(MAKE, CC).exec(CC, "/usr/bin/gcc", ["gcc", "-pipe", "a.c"])
    story.at(0).pipe(CC, 3, 4).fork(CC, cc1).fork(CC, assembler).close(CC, 3).close(CC, 4)
    story.at(0).dup(cc1, 4, 1).close(cc1, 3).close(cc1, 4).exec(cc1, "/usr/bin/cc1", ["cc1"])
    story.at(0).dup(assembler, 3, 0).close(assembler, 3).close(assembler, 4)
    story.at(0).exec(assembler, "/usr/bin/as", ["as"])
    ends = [(1000, cc1, (800 * US, 0, 4096, 1, 1, 0, 9)),
            (reader_ends_us, assembler, (10 * US, 0, 4096, 1, 1, 9, 0))]  # fmt: skip
    for us, upid, used in sorted(ends):
        story.at(us).usage(upid, *used).exit(upid)
    story.at(1010).exit(CC)
    story.at(1010).exit(MAKE)
    return story.builder.trace()


# the trace shows one processor, where `as` takes 10 us: before cc1 ended, or at most 5 after it
@pytest.mark.parametrize(("reader_ends_us", "beside_us"), [(990, 20), (1005, 10)])
def test_a_reader_of_a_pipe_waited_for_what_was_written(
    tmp_path: Path, reader_ends_us: int, beside_us: int
) -> None:
    """`as` often ends before cc1 does, which closes the pipe and then frees its memory."""
    found = predict(database_of(tmp_path, _compiler_that_pipes(reader_ends_us)), {"cc1": 0.5})
    expected = ((800 + beside_us) * US, (400 + beside_us) * US)
    assert (found.simulated_ns, found.ordered_ns) == expected


def _busy_and_then_asleep() -> bytes:
    """`echo x | ssh host make` for 1000 us: echo ends at 5, ssh computes for 10 and sleeps."""
    story, (echo, ssh) = Story(), (n << 22 | n for n in (3, 4))
    story.at(0).exec(CC, "/bin/sh", ["sh", "-c", "echo x | ssh host make"])
    story.at(0).pipe(CC, 3, 4).fork(CC, echo).fork(CC, ssh).close(CC, 3).close(CC, 4)
    story.at(0).dup(echo, 4, 1).close(echo, 3).close(echo, 4).exec(echo, "/bin/echo", ["echo"])
    story.at(0).dup(ssh, 3, 0).close(ssh, 3).close(ssh, 4).exec(ssh, "/usr/bin/ssh", ["ssh"])
    story.at(5).usage(echo, 5 * US, 0, 4096, 1, 1, 0, 9).exit(echo)
    story.at(1000).usage(ssh, 10 * US, 0, 4096, 1, 1, 9, 0).exit(ssh)
    story.at(1000).exit(CC)
    return story.builder.trace()


def test_a_reader_that_sleeps_after_its_writer_has_ended_slept(tmp_path: Path) -> None:
    found = predict(database_of(tmp_path, _busy_and_then_asleep()), {"ssh": 0.5})
    assert found.simulated_ns == 1000 * US
    assert found.ordered_ns == pytest.approx(502 * US, abs=2 * US)


def test_a_build_that_sleeps_does_not_sleep_longer_than_its_sleeps(tmp_path: Path) -> None:
    """Make starts the second of two sleeps 400 us late: what it waited for nobody knows."""
    story, other = Story(), 3 << 22 | 3
    story.at(0).exec(MAKE, "/usr/bin/make", ["make", "-j2"])
    story.at(0).fork(MAKE, CC).exec(CC, "/bin/sleep", ["sleep", "1"])
    story.at(400).fork(MAKE, other).exec(other, "/bin/sleep", ["sleep", "1"])
    for us, upid in ((1000, CC), (1400, other)):
        story.at(us).usage(upid, US, 0, 4096, 1, 1, 3, 1).exit(upid)
    story.at(1400).exit(MAKE)
    found = predict(database_of(tmp_path, story.builder.trace()), {}, 1)
    assert (found.traced_ns, found.simulated_ns) == (1400 * US, 1000 * US)
    assert found.predicted_ns == pytest.approx(2000 * US, abs=10 * US)
