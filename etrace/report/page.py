# SPDX-License-Identifier: Apache-2.0
"""An image -> the page: one file, no network, no library, no text of the trace as markup.

Scripts and style are files of `web/`; the policy of the page allows these by their hashes and
nothing else. All that comes from the trace is in the data block, which the scripts show as text, or
in the plain tables, which `xml.etree` escapes (plain.py).
"""

from __future__ import annotations

import re
from importlib.resources import files

from libetrace.image.file import Image

from etrace import __version__
from etrace.page_policy import policy
from etrace.query.classes.file_kinds import FileKinds
from etrace.query.includes import includes
from etrace.report import failures, modules
from etrace.report.commands import CLASSES, Commands, add_commands, add_critical_path
from etrace.report.pack import Pack, shown
from etrace.report.plain import plain_tables
from etrace.report.uses import Uses, add_uses
from etrace.spec.database import NONE

#: in the order in which they use each other
SCRIPTS = ("data", "show", "table", "details", "timeline", "flame", "neighbours", "sections",
           "main")  # fmt: skip
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def _web(name: str) -> str:
    return files("etrace.report").joinpath("web", name).read_text(encoding="utf-8")


def script() -> str:
    """Return all scripts as one: imports are lines of their own, and no name is used twice."""
    parts = (_web(f"{name}.js") for name in SCRIPTS)
    return '\n"use strict";\n' + "".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


def style() -> str:
    """Return the style sheet."""
    return "\n" + _web("style.css")


def served() -> str:
    """Return the page of a server, which asks for its script, style and data."""
    return _web("served.html")


def pack(image: Image) -> Pack:
    """Collect the data of the page."""
    packed, commands = Pack(), Commands(image)
    add_commands(packed, commands)
    add_critical_path(packed, commands)
    uses = Uses(commands)
    number = add_uses(packed, image, uses)
    packed.meta |= {
        "version": __version__,
        "title": title(image),
        "root": shown(image.attributes.get("source_root", "").encode(errors="surrogateescape")),
        "classes": list(CLASSES),
        "n_programs": sum(image["executions"]["binary"][row] != NONE for row in commands.rows),
        "is_processed": "linked" in image.tables,
        "failures": failures.describe(commands),
        "modules": modules.describe(commands, number),
    }
    _add_headers(packed, image, number, uses.kinds)
    return packed


def _add_headers(packed: Pack, image: Image, number: dict[int, int], kinds: FileKinds) -> None:
    if "compilations" not in image.tables:
        return
    found = includes(image, kinds=kinds)
    headers = found.headers
    packed.add("header.path", "I", (packed.text(image.path_string(h.path)) for h in headers))
    packed.add("header.file", "i", (number.get(h.path, -1) for h in headers))
    packed.add("header.opens", "I", (h.n_opens for h in headers))
    packed.add("header.compilations", "I", (h.n_compilations for h in headers))
    packed.add("header.bytes", "d", (h.read_bytes for h in headers))
    packed.add("header.share", "d", (h.share for h in headers))
    fit = found.fit
    packed.add("header.ns", "d", (h.read_bytes * fit.ns_a_byte if fit else -1 for h in headers))
    packed.add("header.error", "d", (h.read_bytes * fit.error if fit else -1 for h in headers))
    packed.meta["n_compilations"] = found.n_compilations


def title(image: Image) -> str:
    """Return the name of the build's directory."""
    root = image.attributes.get("source_root", "").encode(errors="surrogateescape")
    return shown(root.rstrip(b"/").rpartition(b"/")[2]) or "build"


def render(image: Image, first: str | None = None) -> str:
    """Return the page; `first` is the id of the part to begin with, by default the usual order."""
    code, look, packed = script(), style(), pack(image)
    if first is not None:
        packed.meta["first"] = first
    values = {
        "policy": policy(code, look),
        "style": look,
        "script": code,
        "plain": plain_tables(packed.meta["title"], image),
        "data": packed.encode(),
    }
    return re.sub(r"@(\w+)@", lambda mark: values[mark[1]], _web("page.html"))
