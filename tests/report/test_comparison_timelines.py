# SPDX-License-Identifier: Apache-2.0
"""The timelines of two builds whose differences are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report.two_builds import MS, Recipe

from etrace.report.comparison import page, timelines
from etrace.report.comparison.compare import Comparison, compare
from etrace.report.comparison.timelines import OTHERS, Box, Mark, Timelines

Drawn = Callable[..., tuple[Comparison, Timelines]]


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    """Compare two builds, each a Recipe of some values."""

    def drawn(before: dict[str, Any], after: dict[str, Any]) -> tuple[Comparison, Timelines]:
        images = []
        for name, values in (("a", before), ("b", after)):
            root = tmp_path / name / "src"
            root.mkdir(parents=True)
            images.append(Recipe(root, **values).write(tmp_path / name / "database"))
        found = compare(images[0], images[1])
        return found, timelines.timelines(found)

    return drawn


def shown(found: Comparison, side: int, boxes: tuple[Box, ...]) -> list[tuple[str, float, float]]:
    """Return the name of each box, its start and its length in ms."""
    of = found.builds[side]
    return [(of.name(b.row), b.start_ns / MS, (b.end_ns - b.start_ns) / MS) for b in boxes]


def marks(found: Comparison, side: int, drawn: Timelines) -> dict[str, Mark]:
    """Return what is marked in one build."""
    own = ((found.builds[side].name(box.row), box.mark) for box in drawn.sides[side].boxes)
    return {name: mark for name, mark in own if mark is not None}


def test_commands_that_started_no_other_are_drawn_when_they_ran(drawn: Drawn) -> None:
    found, both = drawn({}, {"sources": {"a": 100, "b": 400}})
    before, after = both.sides
    rounded = [(name, round(s), round(n)) for name, s, n in shown(found, 0, before.boxes)]
    assert rounded == [("cc1 a.c", 0, 100), ("cc1 b.c", 100, 200), ("ld prog", 300, 50)]
    assert (before.n_lanes, before.left_out) == (1, 0)
    assert both.span_ns == after.elapsed_ns > before.elapsed_ns


def test_a_program_has_one_colour_in_both_builds(drawn: Drawn) -> None:
    found, both = drawn({"sources": {"a": 1}}, {"sources": {"a": 300}})
    assert both.programs == ("cc1", "ld")
    assert not both.has_others
    for side, build in zip(both.sides, found.builds, strict=True):
        for box in side.boxes:
            assert both.programs[box.colour] == build.name(box.row).split()[0]


def test_programs_that_took_least_have_no_colour_of_their_own(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "N_COLOURS", 1)
    _, both = drawn({}, {})
    assert (both.programs, both.has_others) == (("cc1",), True)
    assert [box.colour for box in both.sides[0].boxes] == [0, 0, OTHERS]


def test_slower_new_and_gone_commands_are_marked(drawn: Drawn) -> None:
    found, both = drawn(
        {"sources": {"a": 100, "b": 200, "c": 100, "gone": 50}},
        {"sources": {"a": 150, "b": 210, "c": 50, "new": 40}},
    )
    assert marks(found, 0, both) == {"cc1 gone.c": Mark.GONE}
    assert marks(found, 1, both) == {"cc1 a.c": Mark.SLOWER, "cc1 new.c": Mark.NEW}  # b: by 5 %


def test_what_cannot_be_seen_is_not_slower(drawn: Drawn) -> None:
    found, both = drawn({"sources": {"a": 1, "b": 9000}}, {"sources": {"a": 3, "b": 9000}})
    assert marks(found, 1, both) == {}


def test_neighbours_too_short_to_be_seen_share_a_box(drawn: Drawn) -> None:
    _, both = drawn({"probes": 30}, {"sources": {"a": 20_000}, "probes": 30})
    boxes = [box for box in both.sides[0].boxes if box.n > 1]
    assert sum(box.n for box in boxes) == 30
    assert len(boxes) < 12
    least_ns = both.span_ns * timelines.LEAST
    assert all(box.end_ns - box.start_ns <= least_ns for box in boxes)
    assert {both.programs[box.colour] for box in boxes} == {"probe"}


def test_lanes_hold_commands_that_ran_at_once() -> None:
    times = ((0, 10), (1, 4), (2, 12), (4, 6), (10, 11), (12, 13))
    commands = [timelines._Command(row, *each, "") for row, each in enumerate(times)]
    assert list(timelines._lanes(commands)) == [0, 1, 2, 1, 0, 0]


def test_commands_in_lanes_that_are_not_drawn_are_counted(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MAX_LANES", 0)
    found, both = drawn({}, {})
    assert (both.sides[0].boxes, both.sides[0].left_out) == ((), 3)
    assert "3 commands in further lanes are not drawn" in page.render(["a", "b"], found, [])


def test_a_failed_command_is_shown_as_failed(drawn: Drawn) -> None:
    found, both = drawn({}, {"failing": ("b",)})
    failed = [found.builds[1].name(box.row) for box in both.sides[1].boxes if box.is_failed]
    assert failed == ["cc1 b.c"]


def test_the_page_has_both_on_one_scale(drawn: Drawn) -> None:
    found, both = drawn({}, {"sources": {"a": 100, "b": 600}})
    text = page.render(["before", "after"], found, [])
    widths = re.findall(r'class="ran" x="0" width="([\d.]+)%"', text)
    part = both.sides[0].elapsed_ns / both.sides[1].elapsed_ns
    assert [float(width) for width in widths] == [pytest.approx(100 * part, abs=0.01), 100]
    assert "cc1 b.c, 0.100 s to 0.700 s, slower: +0.400 s (+200.0 %)" in text
