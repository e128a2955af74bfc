# SPDX-License-Identifier: Apache-2.0
"""The page without scripts: head figures and the slowest commands as plain tables.

They are shown when a browser runs no scripts or cannot inflate the data. `xml.etree` escapes every
text.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from libetrace.image.file import Image

from etrace.figures import count
from etrace.query.summary import summarise
from etrace.report.pack import shown

MAX_COMMAND = 300


def _seconds(n_ns: int) -> str:
    return f"{n_ns / 1e9:.3f} s"


def _cpu(n_ns: int | None) -> str:
    return "-" if n_ns is None else _seconds(n_ns)


def _table(
    parent: Element, caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]
) -> None:
    table = SubElement(parent, "table")
    SubElement(table, "caption").text = caption
    line = SubElement(SubElement(table, "thead"), "tr")
    for name in head:
        SubElement(line, "th", scope="col").text = name
    body = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(body, "tr")
        for cell in row:
            SubElement(line, "td").text = cell


def plain_tables(title: str, image: Image) -> str:
    """Return the markup of the tables."""
    page = summarise(image)
    root = Element("div")
    SubElement(root, "h1").text = title
    SubElement(root, "p").text = (
        f"{count(page.processes, 'process')}, {count(page.executions, 'program')} run"
        f" ({page.failed} with a status other than 0), {_seconds(page.elapsed_ns)}"
    )
    _table(
        root, "Slowest commands", ("time", "CPU", "command"),
        (
            (_seconds(each.elapsed), _cpu(each.cpu_ns),
             shown(shlex.join(each.argv).encode(errors="surrogateescape"))[:MAX_COMMAND])
            for each in page.slowest
        ),
    )  # fmt: skip
    _table(
        root, "Time by program", ("program", "times", "time", "CPU"),
        (
            (shown(p.name.encode(errors="surrogateescape")), str(p.count), _seconds(p.elapsed_ns),
             _cpu(p.cpu_ns))
            for p in page.programs
        ),
    )  # fmt: skip
    return tostring(root, encoding="unicode", method="html")
