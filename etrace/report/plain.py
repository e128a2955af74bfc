# SPDX-License-Identifier: Apache-2.0
"""The page without scripts: its figures, and the slowest commands as plain tables.

They are shown when a browser runs no scripts or cannot inflate the data. `xml.etree` escapes every
text.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from libetrace.image.file import Image

from etrace.figures import seconds
from etrace.query.summary import summarise
from etrace.redaction.build import Redaction
from etrace.report.head import Figure
from etrace.report.pack import shown

MAX_COMMAND = 300


def _cpu(n_ns: int | None) -> str:
    return "-" if n_ns is None else seconds(n_ns)


def _text(text: str, redaction: Redaction) -> str:
    return shown(redaction.raw(os.fsencode(text)))


def _command(argv: Sequence[str], redaction: Redaction) -> str:
    words = redaction.words(list(map(os.fsencode, argv)))
    return shown(os.fsencode(shlex.join(map(os.fsdecode, words))))


def add_table(
    parent: Element, caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]
) -> list[Element]:
    """Add a table, the first column of which names the rows; return its lines."""
    table = SubElement(parent, "table")
    SubElement(table, "caption").text = caption
    line = SubElement(SubElement(table, "thead"), "tr")
    for name in head:
        SubElement(line, "th", scope="col").text = name
    body, lines = SubElement(table, "tbody"), list[Element]()
    for row in rows:
        line = SubElement(body, "tr")
        lines.append(line)
        for cell in row:
            SubElement(line, "td").text = cell
    return lines


def plain_tables(title: str, figures: Iterable[Figure], image: Image, redaction: Redaction) -> str:
    """Return the markup of the figures and tables, without secrets."""
    page = summarise(image)
    root = Element("div")
    SubElement(root, "h1").text = title
    lines = SubElement(root, "ul")
    for each in figures:
        SubElement(lines, "li").text = f"{each.word}: {each.text} ({each.meaning})"
    for note in page.notes:
        SubElement(root, "p").text = _text(f"{note.text}. {note.cure}", redaction)
    add_table(
        root, "Slowest commands", ("time", "CPU", "command"),
        (
            (seconds(each.elapsed), _cpu(each.cpu_ns),
             _command(each.argv, redaction)[:MAX_COMMAND])
            for each in page.slowest
        ),
    )  # fmt: skip
    add_table(
        root, "Time by program", ("program", "times", "time", "CPU"),
        (
            (_text(p.name, redaction), str(p.count), seconds(p.elapsed_ns), _cpu(p.cpu_ns))
            for p in page.programs
        ),
    )  # fmt: skip
    return tostring(root, encoding="unicode", method="html")
