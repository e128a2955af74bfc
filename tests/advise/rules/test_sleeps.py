# SPDX-License-Identifier: Apache-2.0
"""A script that sleeps while the build waits; one that sleeps beside what takes longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def test_a_build_that_waits_for_a_sleep(tmp_path: Path) -> None:
    story = Seconds()
    sh = story.begin(0, "sh", "wait.sh")
    story.run((0, 1000), "sleep", "1", parent=sh)
    story.end(1000, sh)
    story.compile((1000, 2000), "a")
    story.end(2000)
    found = advice(tmp_path, story)["sleeps"]
    assert found.title == "1 sleep of 1.000 s"
    assert found.what == "Started by sh wait.sh."
    assert found.gain
    assert found.gain.time_ns == 1000 * MS
    assert labels(found) == ["sleep 1"]


def test_a_sleep_that_nothing_waits_for(tmp_path: Path) -> None:
    story = Seconds("-j2")
    story.compile((0, 2000), "a")
    story.run((0, 1000), "sleep", "1")
    story.end(2000)
    assert "sleeps" not in advice(tmp_path, story)


def test_a_sleep_gains_no_more_than_it_took_on_a_busy_machine(tmp_path: Path) -> None:
    """The script computes for 1 s and waits for a processor for 8."""
    story = Seconds()
    sh = story.begin(0, "sh", "wait.sh")
    sleep = story.begin(1, "sleep", "1", parent=sh)
    story.at(1001).usage(sleep, MS, 0, 4096, 1, 1, 3, 1).exit(sleep)
    story.at(10_000).usage(sh, 1000 * MS, 0, 4096, 1, 1, 1, 90).exit(sh)
    story.end(10_000)
    gain = advice(tmp_path, story)["sleeps"].gain
    assert gain
    assert gain.time_ns == pytest.approx(1000 * MS, rel=0.01)
    assert gain.error_ns <= gain.time_ns
