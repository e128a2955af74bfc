# SPDX-License-Identifier: Apache-2.0
"""A comparison -> one HTML page in the style of the report, without a script.

`xml.etree` escapes every text; the policy of the page allows its own style and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from etrace.page_policy import policy
from etrace.report.comparison.compare import Comparison
from etrace.report.comparison.drawing import STYLE, add_timelines
from etrace.report.comparison.limits import Verdict
from etrace.report.comparison.tables import Section, sections, verdict
from etrace.report.pack import shown
from etrace.report.page import style
from etrace.report.plain import add_table

#: rows of a table
N_ROWS = 500
#: of the bar of a change, px
WIDTH, HEIGHT = 120, 10


def render(names: Sequence[str], found: Comparison, verdicts: Sequence[Verdict]) -> str:
    """Return the page; `names` are those of the two builds."""
    look = style() + STYLE
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(
        head, "meta",
        {"http-equiv": "Content-Security-Policy", "content": policy("", look)},
    )  # fmt: skip
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "meta", name="color-scheme", content="light dark")
    SubElement(head, "title").text = "etrace compare"
    SubElement(head, "style").text = look
    body = SubElement(SubElement(html, "body"), "main", id="plain")
    _add_body(body, [_plain(name) for name in names], found, verdicts)
    return "<!doctype html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def _plain(text: str) -> str:
    return shown(text.encode(errors="surrogateescape"))


def _add_body(
    body: Element, names: Sequence[str], found: Comparison, verdicts: Sequence[Verdict]
) -> None:
    SubElement(body, "h1").text = f"{names[1]} compared with {names[0]}"
    figures, *tables = sections(found, N_ROWS)
    nav = SubElement(body, "nav")
    SubElement(nav, "a", href="#timelines").text = "Timelines"
    for number, section in enumerate(tables):
        SubElement(nav, "a", href=f"#part{number}").text = section.title
    for each in verdicts:
        kind = "failure" if each.is_exceeded else "remark"
        SubElement(body, "p", {"class": kind}).text = _plain(verdict(each))
    _add_figures(body, figures)
    add_timelines(body, names, found)
    for number, section in enumerate(tables):
        _add_section(body, section, f"part{number}")


def _add_figures(body: Element, section: Section) -> None:
    """Add the figures as tiles."""
    tiles = SubElement(body, "ul", {"class": "figures"})
    for name, before, after, change, *noise in section.rows:
        tile = SubElement(tiles, "li")
        SubElement(tile, "span").text = name
        SubElement(tile, "b").text = after
        SubElement(tile, "small").text = f"before {before}, {change}".removesuffix(", =")
        if noise and noise[0] != "-":
            SubElement(tile, "small").text = f"noise {noise[0]}"
    SubElement(body, "p", {"class": "remark"}).text = section.note


def _add_section(body: Element, section: Section, name: str) -> None:
    part = SubElement(body, "section", id=name)
    SubElement(part, "h2").text = section.title
    frame = SubElement(part, "div", {"class": "table", "tabindex": "0"})
    rows = [[_plain(cell) for cell in row] for row in section.rows]
    head = (*section.head, "") if section.amounts else section.head
    lines = add_table(frame, section.title, head, rows)
    most = max(map(abs, section.amounts), default=0) or 1
    for line, amount in zip(lines, section.amounts, strict=False):
        _add_bar(SubElement(line, "td"), amount / most)
    if section.quoted:
        SubElement(part, "pre").text = "\n".join(map(_plain, section.quoted))
    if section.n_more:
        note = f"and {section.n_more:,} more (--format json lists all)"
        SubElement(part, "p", {"class": "remark"}).text = note
    if section.note:
        SubElement(part, "p", {"class": "remark"}).text = section.note


def _add_bar(cell: Element, part: float) -> None:
    """Draw a change as a bar to the right, less to the left; the table has it as text."""
    half = WIDTH / 2
    drawn = SubElement(
        cell,
        "svg",
        {"class": "bar", "width": str(WIDTH), "height": str(HEIGHT), "aria-hidden": "true"},
    )
    SubElement(
        drawn, "rect",
        {"class": "more" if part > 0 else "less", "height": str(HEIGHT),
         "x": f"{half + min(0.0, part) * half:.1f}", "width": f"{abs(part) * half:.1f}"},
    )  # fmt: skip
