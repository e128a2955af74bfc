# SPDX-License-Identifier: Apache-2.0
"""A job after the other on two processors; and as many at once as there are processors."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(second_begins: int) -> Seconds:
    story = Seconds("-s")
    story.builder.on(0)
    story.compile((100, 1100), "a")
    story.builder.on(1)
    story.compile((second_begins, second_begins + 1000), "b")
    story.end(second_begins + 1100)
    return story


def test_jobs_that_could_have_run_beside_each_other(tmp_path: Path) -> None:
    found = advice(tmp_path, build(1100))["too-few-jobs"]
    assert found.title == "1 job at once on 2 processors"
    assert found.gain
    assert found.gain.time_ns == 1000 * MS
    assert "2 jobs waited 1.000 s" in found.what
    assert labels(found) == ["make"]


def test_a_job_for_each_processor(tmp_path: Path) -> None:
    assert "too-few-jobs" not in advice(tmp_path, build(100))


def test_jobs_that_need_each_other_gain_nothing(tmp_path: Path) -> None:
    story = Seconds()
    story.builder.on(0)
    story.run((0, 1000), "gen", writes=("/src/a.c",))
    story.builder.on(1)
    story.compile((1000, 2000), "a")
    story.end(2000)
    assert "too-few-jobs" not in advice(tmp_path, story)


def script(begins: tuple[int, ...]) -> Seconds:
    story = Seconds()
    python = story.begin(0, "python3", "setup.py", "build")
    for number, begin in enumerate(begins):
        story.builder.on(number % 2)
        story.compile((begin, begin + 900), f"f{number}", parent=python)
    story.end(5000, python)
    story.end(5000)
    return story


def test_a_script_that_compiles_one_source_after_the_other(tmp_path: Path) -> None:
    found = advice(tmp_path, script((1, 1000, 2000, 3000)))["one-after-the-other"]
    assert found.title == "compilations one after the other: 3.600 s"
    assert found.gain
    assert found.gain.time_ns == 1800 * MS
    assert labels(found) == ["python3 setup.py"]


@pytest.mark.parametrize("begins", [(1, 1000, 2000), (1, 1, 2000, 2000)])
def test_a_script_with_few_or_with_some_at_once(tmp_path: Path, begins: tuple[int, ...]) -> None:
    assert "one-after-the-other" not in advice(tmp_path, script(begins))
