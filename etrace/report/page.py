# SPDX-License-Identifier: Apache-2.0
"""An image -> the page: one file, no network, no library, no text of the trace as markup.

Scripts and style are files of `web/`; the policy of the page allows these by their hashes and
nothing else. All that comes from the trace is in the data block, which the scripts show as text, or
in the plain tables, which `xml.etree` escapes (plain.py).
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from importlib.resources import files

from libetrace.image.file import Image

from etrace import __version__
from etrace.advise.build import Build
from etrace.page_policy import policy
from etrace.query.diagnosis import unlisted
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.query.totals import totals
from etrace.redaction.build import Redaction
from etrace.report.commands import CLASSES, add_commands, add_critical_path
from etrace.report.head import Figure, figures
from etrace.report.pack import Pack, shown
from etrace.report.parts import PARTS
from etrace.report.plain import plain_tables
from etrace.report.uses import Contents, Uses, add_uses

#: what the parts share, in the order in which they use each other; main.js comes after the parts
SHARED = ("data", "show", "table", "details", "parts")
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def _web(name: str) -> str:
    return files("etrace.report").joinpath("web", name).read_text(encoding="utf-8")


def script() -> str:
    """Return all scripts as one: imports are lines of their own, and no name is used twice."""
    names = [*SHARED, *dict.fromkeys(f"parts/{part.script}" for part in PARTS), "main"]
    whole = "".join(_web(f"{name}.js") for name in names)
    return '\n"use strict";\n' + _EXPORT.sub("", _IMPORT.sub("", whole))


def style() -> str:
    """Return the style sheet."""
    return "\n" + _web("style.css")


def served() -> str:
    """Return the page of a server, which asks for its script, style and data."""
    return _web("served.html")


def pack(image: Image, redaction: Redaction | None = None) -> Pack:
    """Collect the data of the page, without secrets."""
    redaction = redaction or Redaction(image)
    packed, commands = Pack(redaction.raw, redaction.within), Commands(image)
    labels = Labels(image, redaction.words)
    add_commands(packed, commands, labels)
    uses = Uses(commands)
    build = Build(image, uses.kinds, commands, labels)
    found, path = totals(image), add_critical_path(packed, commands, build)
    number = add_uses(packed, image, uses)
    packed.meta |= {
        "version": __version__,
        "title": title(image),
        "root": shown(image.attributes.get("source_root", "").encode(errors="surrogateescape")),
        "classes": list(CLASSES),
        "figures": [asdict(figure) for figure in figures(found, path)],
        "totals": found._asdict(),
        "is_processed": found.linked_modules is not None,
        "notes": [
            shown(redaction.raw(os.fsencode(f"{note.text}. {note.cure}")))
            for note in unlisted(image).notes()
        ],
    }
    contents = Contents(image, build, commands, uses, number)
    for part in PARTS:
        if part.add:
            part.add(packed, contents)
    return packed


def title(image: Image) -> str:
    """Return the name of the build's directory."""
    root = image.attributes.get("source_root", "").encode(errors="surrogateescape")
    return shown(root.rstrip(b"/").rpartition(b"/")[2]) or "build"


def render(image: Image, first: str | None = None) -> str:
    """Return the page; `first` is the id of the part to begin with, by default the usual order."""
    redaction = Redaction(image)
    code, look, packed = script(), style(), pack(image, redaction)
    if first is not None:
        packed.meta["first"] = first
    known = [Figure(**figure) for figure in packed.meta["figures"]]
    values = {
        "policy": policy(code, look),
        "style": look,
        "script": code,
        "plain": plain_tables(redaction.text(packed.meta["title"]), known, image, redaction),
        "data": packed.encode(),
    }
    return re.sub(r"@(\w+)@", lambda mark: values[mark[1]], _web("page.html"))
