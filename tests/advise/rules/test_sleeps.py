# SPDX-License-Identifier: Apache-2.0
"""A script that sleeps while the build waits; one that sleeps beside what takes longer."""

from __future__ import annotations

from pathlib import Path

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
