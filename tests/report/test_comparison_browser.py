# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison in a browser: its timelines in any window, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Page
from report.two_builds import Recipe

from etrace.cli.main import etrace

pytestmark = pytest.mark.xdist_group("browser")
MARKUP = "<img src=x onerror=document.title=0>"
#: text of a box -> where it is and how it looks, for each drawing
BOXES = """[...document.querySelectorAll('.timeline')].map(drawing => Object.fromEntries(
    [...drawing.querySelectorAll('g')].map(box => {
        const rects = [...box.querySelectorAll('rect')], place = rects[0].getBoundingClientRect();
        return [box.querySelector('title').textContent.split(', ')[0], {
            x: place.x, width: place.width, marks: rects.slice(1).map(mark => mark.classList[0]),
            colour: getComputedStyle(rects[0]).fill }];
    })))"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two builds: one source takes twice as long, one is new, one is gone."""
    where = tmp_path_factory.mktemp("compared")
    for name, sources in (("a", {"a": 100, "gone": 50}), ("b", {"a": 200, MARKUP: 100})):
        (where / name).mkdir()
        Recipe(where / name, sources=sources).write(where / f"{name}.db")
    words = [str(where / "a.db"), str(where / "b.db"), "-q", "-o", str(where / "page.html")]
    assert etrace(["compare", *words]) == 0
    return where / "page.html"


@pytest.mark.parametrize("width", [390, 1920])
@pytest.mark.parametrize("is_dark", [False, True])
def test_both_timelines_have_one_scale_and_the_same_colours(
    page: Page, compared: Path, width: int, is_dark: bool
) -> None:
    page.messages.clear()
    page.open(compared, dark=is_dark, width=width)
    before, after = page.run(BOXES)
    assert list(before) == ["cc1 a.c", "cc1 gone.c", "ld prog"]
    assert list(after) == ["cc1 a.c", f"cc1 {MARKUP}.c", "ld prog"]
    assert after["cc1 a.c"]["width"] == pytest.approx(2 * before["cc1 a.c"]["width"], rel=0.02)
    assert after["cc1 a.c"]["x"] == before["cc1 a.c"]["x"]
    for name in ("cc1 a.c", "ld prog"):
        assert after[name]["colour"] == before[name]["colour"]
    assert before["ld prog"]["colour"] != before["cc1 a.c"]["colour"]
    assert [box["marks"] for box in before.values()] == [[], ["gone"], []]
    assert [box["marks"] for box in after.values()] == [["slower"], ["new"], []]
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.scripts.length + document.images.length") == 0
    assert page.messages == []


def test_the_legend_says_what_colours_and_marks_mean(page: Page, compared: Path) -> None:
    page.open(compared)
    legend = page.run("[...document.querySelectorAll('.legend li')].map(item => item.textContent)")
    assert legend == ["cc1", "ld", "slower", "ran newly", "ran no longer"]
    fills = (
        "new Set([...document.querySelectorAll('.legend rect')].map(r => getComputedStyle(r).fill))"
    )
    assert page.run(f"{fills}.size") == 6  # a mark is on the colour of no program


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_comparison_is_drawn_without_a_script(page: Page, tmp_path: Path, is_dark: bool) -> None:
    for name, sources in (("a", {"a": 100, "b": 200}), ("b", {"a": 150, "b": 180, MARKUP: 1})):
        (tmp_path / name).mkdir()
        Recipe(tmp_path / name, sources=sources).write(tmp_path / f"{name}.db")
    where, written = [str(tmp_path / f"{name}.db") for name in "ab"], tmp_path / "compared.html"
    assert etrace(["compare", *where, "-q", "-o", str(written)]) == 0
    page.messages.clear()
    page.requests.clear()
    page.open(written, dark=is_dark, width=390)
    assert page.messages == []
    assert page.requests == [written.as_uri()]
    assert page.run("document.scripts.length") == 0
    assert page.run("document.title") == "etrace compare"
    assert page.run("document.querySelector('h1').textContent").endswith(
        "compared with " + where[0]
    )
    texts = page.run("[...document.querySelectorAll('td')].map(cell => cell.textContent)")
    assert f"cc1 {MARKUP}.c" in texts
    widths = "[...document.querySelectorAll('#part2 rect')].map(bar => bar.getAttribute('width'))"
    assert [float(width) for width in page.run(widths)] == [60.0]
    assert page.run("document.documentElement.scrollWidth") <= 390
