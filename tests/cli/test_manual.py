# SPDX-License-Identifier: Apache-2.0
"""Man pages: troff and mandoc read them without a warning, and they say what the programs do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from etrace.cli import main
from etrace.cli.cas import program as cas
from etrace.cli.manual import declarations
from etrace.cli.manual import pages as manual

TOP = Path(__file__).parents[2]
NAMES = ("cas.1", "etrace.1", "etrace_cat.1", "etrace_parser.1", "etraced.8", "unix-tracer.1")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of pages as they render now; `make lint` compares them to the committed ones."""
    directory = tmp_path_factory.mktemp("man")
    for path, text in manual.pages(TOP).items():
        (directory / path.name).write_text(text)
    return directory


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_no_warnings(pages: Path, name: str) -> None:
    page = pages / name
    groff = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, check=True)
    assert groff.stderr == b""
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, check=False)
    # a page is not of a day: it is rendered again whenever an option changes
    lines = [line for line in lint.stdout.splitlines() if b"missing date" not in line]
    assert lines == []


def shown(page: Path) -> str:
    text = subprocess.run(["mandoc", "-Tutf8", page], capture_output=True, check=True).stdout
    return re.sub("(?s).\x08", "", text.decode())  # bold is printed twice


def test_pages_name_every_command(pages: Path) -> None:
    names = [", ".join((c.name, *c.aliases)) for c in cas.COMMANDS]
    assert [name for name in names if f"   {name}\n" not in shown(pages / "cas.1")] == []
    names = [c.name for c in main.COMMANDS]
    assert [name for name in names if f"   {name}\n" not in shown(pages / "etrace.1")] == []


def test_committed_pages_are_those_of_the_programs() -> None:
    assert sorted(path.name for path in (TOP / "docs" / "man").iterdir()) == list(NAMES)


def test_a_c_program_is_read_from_its_help() -> None:
    program = declarations.read_help(
        "tool",
        "usage: tool [-v] FILE\n       tool --all\n\nDo\nit.\n\n"
        "  -o, --output FILE write there\n  -v                say more\n  --all             all\n\n"
        "Exit status: 0.\n",
    )
    assert program.usage == ("[-v] FILE", "--all")
    assert [(o.names, o.value, o.kind.value, o.help) for o in program.body.options] == [
        (("-o", "--output"), "FILE", "file", "write there"),
        (("-v",), "", "none", "say more"),
        (("--all",), "", "none", "all"),
    ]
    assert (program.body.epilog, program.exit_status) == ("Do it.", "0.")


def test_text_that_troff_would_read_is_escaped() -> None:
    assert manual.filled(".x -y 'z' \\n") == r"\&.x \-y \(aqz\(aq \en"


def test_examples_keep_their_lines(pages: Path) -> None:
    lines = [line.strip() for line in shown(pages / "etrace.1").splitlines()]
    first = lines.index("etrace xray account -m PROGRAM xray-log.PROGRAM.*")
    assert lines[first + 1] == "etrace xray flame -m PROGRAM xray-log.PROGRAM.* -o flame.html"
