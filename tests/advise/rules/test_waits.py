# SPDX-License-Identifier: Apache-2.0
"""A command that waits for a disk; one that computes, and a trace without usage."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(cpu_ms: int | None, program: str = "gen") -> Seconds:
    story = Seconds()
    upid = story.begin(0, program, "x")
    if cpu_ms is not None:
        story.at(1000).usage(upid, cpu_ms * MS, 0, 4096, 1, 1, 900, 1)
    story.end(1000, upid)
    story.end(1001)
    return story


def test_a_command_that_waits(tmp_path: Path) -> None:
    found = advice(tmp_path, build(200))["waits"]
    assert found.title == "1 command waited without a processor: 0.800 s"
    assert found.gain
    assert (found.gain.time_ns, found.gain.is_bound) == (800 * MS, True)
    assert labels(found) == ["gen x"]


def test_a_shell_that_waits_for_what_it_started(tmp_path: Path) -> None:
    story = Seconds()
    sh = story.begin(0, "sh", "x.sh")
    story.run((1, 10), "true", parent=sh)
    story.at(1000).usage(sh, 2 * MS, 0, 4096, 1, 1, 900, 1)
    story.end(1000, sh)
    story.end(1001)
    assert "waits" not in advice(tmp_path, story)


@pytest.mark.parametrize("story", [build(900), build(None), build(2, "sleep")])
def test_one_that_computes_or_sleeps_or_is_not_known(tmp_path: Path, story: Seconds) -> None:
    assert "waits" not in advice(tmp_path, story)
