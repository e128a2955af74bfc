# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: in any browser and window, and with the sections that a build has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from advise.stories import Seconds, image_of
from browser import Page
from builders import TraceBuilder
from databases import database_of
from timing.builds import two_jobs_with_usage

from etrace.cli.main import etrace

pytestmark = pytest.mark.xdist_group("browser")
EVIL = "</script><img src=x onerror=\"document.title='owned'\">.c"


def test_the_page_needs_no_network_and_says_no_errors(shown: Page, lua: Path) -> None:
    assert set(shown.requests) == {(lua / "build.html").as_uri()}
    assert shown.messages == []
    assert shown.run("document.getElementById('plain').hidden") is True


def test_a_browser_that_cannot_inflate_shows_plain_tables(page: Page, lua: Path) -> None:
    script = page.call(
        "Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream"
    )
    try:
        page.open(lua / "build.html")
        assert page.run("document.getElementById('plain').hidden") is False
        assert page.run("document.querySelectorAll('#plain table').length") == 2
        assert "DecompressionStream" in page.run("document.querySelector('.bad').textContent")
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


@pytest.mark.parametrize("width", [390, 1024, 1920])
@pytest.mark.parametrize("is_dark", [False, True])
def test_the_page_is_no_wider_than_the_window(
    page: Page, lua: Path, width: int, is_dark: bool
) -> None:
    page.open(lua / "build.html", dark=is_dark, width=width)
    assert page.run("document.documentElement.scrollWidth") == width


def failed_build(where: Path) -> None:
    """Write the database of a build that failed."""
    make, cc = (n << 22 | n for n in (1, 2))
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    trace.fork(make, cc).exec(cc, "/usr/bin/cc", ["cc", "-c", EVIL]).open(cc, f"/src/{EVIL}")
    trace.written(cc, f"a.c:1: {EVIL} is wrong\n")
    database_of(where, trace.exit(cc, 1).exit(make, 2).trace())


def test_a_failed_build_begins_with_the_command_that_failed(page: Page, tmp_path: Path) -> None:
    failed_build(tmp_path)
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.messages.clear()
    page.open(tmp_path / "b.html", dark=True)
    assert page.run("document.querySelector('main').firstElementChild.id") == "failures"
    text = page.run("document.querySelector('[role=alert]').textContent")
    assert "status 1" in text
    assert EVIL in text
    assert page.run("document.querySelector('#failures .output').textContent") == (
        f"a.c:1: {EVIL} is wrong"
    )
    assert page.run("document.images.length") == 0
    assert page.messages == []


def test_the_timeline_as_html_is_the_page_with_its_timeline_first(
    page: Page, tmp_path: Path
) -> None:
    failed_build(tmp_path)
    target = tmp_path / "timeline.html"
    assert etrace(["timeline", "--to", "html", "-o", str(target), str(tmp_path)]) == 0
    page.open(target)
    assert page.run("document.querySelector('main section').id") == "timeline"
    assert page.run("document.querySelector('nav a').getAttribute('href')") == "#timeline"
    assert page.run("document.querySelector('#failures') !== null") is True


def test_the_timeline_as_html_has_no_lanes_to_choose(tmp_path: Path) -> None:
    assert etrace(["timeline", "--to", "html", "--lanes", "packed", str(tmp_path)]) == 2


def test_the_findings_are_those_of_advise(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Seconds()
    story.run((0, 1000), "sleep", "1")
    story.run((0, 900), "curl", EVIL)
    story.end(2000)
    image_of(tmp_path, story)
    assert etrace(["advise", "--json", str(tmp_path)]) == 0
    expected = json.loads(capsys.readouterr().out)["findings"]
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.messages.clear()
    page.open(tmp_path / "b.html")
    assert page.run("document.querySelector('main').firstElementChild.id") == "advice"
    titles = page.run("[...document.querySelectorAll('.finding b')].map(each => each.textContent)")
    assert titles == [each["title"] for each in expected]
    page.run("document.querySelector('#finding-downloads').open = true")
    page.run("document.querySelector('#finding-downloads button').click()")
    assert "onerror" in page.run("document.querySelector('#details').textContent")
    assert page.run("document.images.length") == 0
    assert page.messages == []


def test_a_build_without_findings_has_no_advice(page: Page, tmp_path: Path) -> None:
    database_of(tmp_path, two_jobs_with_usage())
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.open(tmp_path / "b.html")
    assert page.run("document.querySelector('#advice') === null") is True
