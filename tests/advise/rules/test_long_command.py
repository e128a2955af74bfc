# SPDX-License-Identifier: Apache-2.0
"""One long compilation while a processor is idle; the same with others beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(n_others: int, n_processors: int = 2) -> Seconds:
    story = Seconds("-j2")
    story.compile((0, 4000), "big")
    for number in range(n_others):
        story.builder.on(number % n_processors)
        story.compile((1000 * number, 1000 * number + 900), f"small{number}")
    story.end(4010)
    return story


def test_the_end_waits_for_one_command(tmp_path: Path) -> None:
    found = advice(tmp_path, build(2))["long-command"]
    assert found.title == "the end waits for gcc big.c: 4.000 s"
    assert "2.200 s" in found.what
    assert found.gain
    assert found.gain.time_ns == 2000 * MS
    assert labels(found) == ["gcc big.c"]


@pytest.mark.parametrize(("n_others", "n_processors"), [(4, 2), (2, 1)])
def test_no_processor_is_idle(tmp_path: Path, n_others: int, n_processors: int) -> None:
    assert "long-command" not in advice(tmp_path, build(n_others, n_processors))


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (("gcc", "-c", "big.c", "-o", "big.o"), "(-O, -flto, -g)"),
        (("ccache", "g++", "-c", "big.cc", "-o", "big.o"), "(-O, -flto, -g)"),
        (("gfortran", "-c", "big.f90", "-o", "big.o"), "(-O, -flto, -g)"),
        (("rustc", "big.rs"), "(-C opt-level, -C lto, -C debuginfo)"),
        (("pdflatex", "big.tex"), None),
        (("python3", "big.py"), None),
        (("ld", "-o", "big", "big.o"), None),
        (("javac", "Big.java"), None),
    ],
)
def test_a_command_gets_advice_about_options_that_it_has(
    tmp_path: Path, argv: tuple[str, ...], options: str | None
) -> None:
    story = Seconds("-j2")
    story.run((0, 4000), *argv)
    for number in range(2):
        story.builder.on(number)
        story.compile((1000 * number, 1000 * number + 900), f"small{number}")
    story.end(4010)
    how = advice(tmp_path, story)["long-command"].how
    assert f"options that cost time {options}" in how if options else "options" not in how
