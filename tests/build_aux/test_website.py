# SPDX-License-Identifier: Apache-2.0
"""The pages that the site has beside docs/: commands and library. `make lint` builds the site."""

from __future__ import annotations

import re
from pathlib import Path

import libetrace
import website

from etrace.cli.cas import program as cas

TOP = Path(__file__).resolve().parents[2]


def test_every_command_is_on_the_page_of_its_program() -> None:
    pages = dict(website.command_pages())
    assert set(pages) == {
        f"commands/{name}.md"
        for name in ("cas", "etrace", "etrace_cat", "etrace_parser", "etraced", "unix-tracer")
    }
    titles = re.findall(r"^### (.*)$", pages["commands/cas.md"], re.MULTILINE)
    assert sorted(titles) == sorted(", ".join((c.name, *c.aliases)) for c in cas.COMMANDS)
    assert "`--env`\n:   " in pages["commands/etrace.md"]


def test_every_name_of_the_library_has_signature_and_words() -> None:
    page = website.reference()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == libetrace.__all__
    names = [website.described(title) for title in libetrace.__all__]
    members = [(name.title, one) for name in names for one in name.members]
    assert len(members) > 100
    assert [name.title for name in names if not name.text] == []
    functions = [(title, one) for title, one in members if "def " in one.signature]
    assert [(title, one.title) for title, one in functions if not one.text] == []
    assert all(one.title in one.signature for _, one in members)


def test_words_of_the_command_line_are_no_markup() -> None:
    assert website.text("N of <a_b> or `x_*`") == r"N of \<a\_b\> or `x_*`"
    assert website.prose("Do:\n  cas deps <x>\nDone.") == "Do:\n\n```\ncas deps <x>\n```\n\nDone."
