# SPDX-License-Identifier: Apache-2.0
"""Changes beyond the noise, and their plots."""

from __future__ import annotations

import datetime
import random
from xml.etree import ElementTree as ET

import pytest

from etrace.fleet import plot
from etrace.fleet.trends import Change, Point, Trend, changes_of

DAY = datetime.datetime(2026, 11, 1)


def points(*means: float, n: int = 3, noise: float = 0.02, seed: int = 1) -> list[Point]:
    """Return builds of commits with these means, which differ by chance."""
    draw = random.Random(seed)
    return [
        Point(f"c{at}", DAY + datetime.timedelta(days=at),
              tuple(draw.gauss(mean, mean * noise) for _ in range(n)))
        for at, mean in enumerate(means)
    ]  # fmt: skip


def found(own: list[Point]) -> list[int]:
    return sorted(change.at for change in changes_of(own))


def test_a_step_is_found_at_its_commit() -> None:
    assert found(points(*[10.0] * 8, *[12.0] * 7)) == [8]
    assert found(points(*[10.0] * 8, *[12.0] * 7, n=1)) == [8]


def test_two_steps_are_found() -> None:
    assert found(points(*[10.0] * 6, *[14.0] * 6, *[9.0] * 6)) == [6, 12]


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_no_change(seed: int) -> None:
    assert found(points(*[10.0] * 20, n=2, seed=seed, noise=0.1)) == []


def test_figures_without_noise_change_exactly() -> None:
    own = points(*[7.0] * 3, *[8.0] * 3, n=1, noise=0.0)
    (change,) = changes_of(own)
    assert change == Change(3, 7.0, 8.0, change.noise)
    assert change.noise < 1e-6
    assert found(points(*[7.0] * 6, n=1, noise=0.0)) == []
    assert found(points(7.0, 9.0, n=1)) == []  # too few builds


def trend_of(own: list[Point], title: str = "time") -> Trend:
    return Trend(title, "s", own, list(changes_of(own)))


def test_a_plot_shows_means_and_changes() -> None:
    lines = list(plot.lines(trend_of(points(*[1.0] * 5, *[2.0] * 5)), 60))
    assert lines[0] == "time"
    body = [line[13:].ljust(10) for line in lines[1 : plot.ROWS + 1]]
    assert ["".join(row[c] for row in body).count("*") for c in range(10)] == [1] * 10
    assert lines[-1][13:] == "     ^"
    assert all(len(line) <= 60 for line in plot.lines(trend_of(points(*[1.0] * 500)), 60))


def test_a_picture_is_xml_with_names_as_text() -> None:
    own = points(*[1.0] * 5, *[2.0] * 5)
    text = plot.svg(trend_of(own, "<script>\x01&"))
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert next(root.iter(f"{space}text")).text == "<script>?&"
    assert len(list(root.iter(f"{space}circle"))) == 10
    assert {e.tag for e in root.iter()} <= {
        f"{space}{t}" for t in ("svg", "style", "text", "line", "circle", "title")
    }


def test_numbers_have_units() -> None:
    assert [plot.number(v, "bytes") for v in (12, 1234, 5e6)] == ["12 B", "1.234 kB", "5 MB"]
    assert [plot.number(v, "s") for v in (0.0123, 61.0)] == ["12.3 ms", "61 s"]
    assert plot.number(264.0, "files") == "264 files"
