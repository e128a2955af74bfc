# SPDX-License-Identifier: Apache-2.0
"""A shell that runs one make after the other; makes whose second reads what the first made."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(read: str, script: tuple[str, ...] = ("sh", "-c", "make -C a; make -C b")) -> Seconds:
    story = Seconds("-j2")
    sh = story.begin(0, *script)
    for number, name in enumerate("ab"):
        begin = 1000 * number + 1
        story.builder.on(number)
        make = story.begin(begin, "make", "-C", name, parent=sh)
        reads = ("/src/a/out",) if name == "b" and read else ()
        story.run(
            (begin, begin + 990), "gen", parent=make, reads=reads, writes=(f"/src/{name}/out",)
        )
        story.end(begin + 991, make)
    story.end(2000, sh)
    story.end(2000)
    return story


def test_a_loop_over_directories(tmp_path: Path) -> None:
    found = advice(tmp_path, build(""))["serial-makes"]
    assert found.gain
    assert 900 * MS < found.gain.time_ns < 1000 * MS
    assert found.gain.when == "a build with -j2"
    assert labels(found) == ["make", "make"]


def test_a_directory_that_needs_the_other(tmp_path: Path) -> None:
    assert "serial-makes" not in advice(tmp_path, build("/src/a/out"))


@pytest.mark.parametrize("script", ["sh ./configure", "cmake ..", "python3 /usr/bin/meson setup b"])
def test_makes_of_probes_stay_where_they_are(tmp_path: Path, script: str) -> None:
    assert "serial-makes" not in advice(tmp_path, build("", tuple(script.split())))
