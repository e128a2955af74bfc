# SPDX-License-Identifier: Apache-2.0
"""A build that copies for a third of its time; one that copies a little."""

from __future__ import annotations

from pathlib import Path

from advise.stories import MS, Seconds, advice, labels


def build(ms: int) -> Seconds:
    story = Seconds()
    story.run((0, ms), "cp", "-r", "include", "out")
    story.compile((ms + 1, ms + 2000), "a")
    story.end(ms + 2000)
    return story


def test_a_build_that_copies(tmp_path: Path) -> None:
    found = advice(tmp_path, build(1000))["copies"]
    assert found.gain
    assert (found.gain.time_ns, found.gain.is_bound) == (1000 * MS, True)
    assert labels(found) == ["cp out"]


def test_a_copy_below_the_bound(tmp_path: Path) -> None:
    assert "copies" not in advice(tmp_path, build(50))
