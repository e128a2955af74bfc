# SPDX-License-Identifier: Apache-2.0
"""Man pages: troff and mandoc read them without a warning, and they say what the programs do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from etrace.cli import main
from etrace.cli.cas import program as cas
from etrace.cli.manual import declarations
from etrace.cli.manual import pages as manual

COLLECTOR = Path(sys.executable).with_name("etrace_cat")
INSTALLED = Path(sys.prefix, "share/man")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return manual.pages(COLLECTOR)


def test_the_build_installed_the_pages_of_this_tree(pages: dict[str, str]) -> None:
    names = ("cas*", "etrace*", "unix-tracer*")
    files = [file for name in names for file in INSTALLED.glob(f"man*/{name}")]
    assert {f"{file.parent.name}/{file.name}": file.read_text() for file in files} == pages


def test_pages_have_no_warnings(pages: dict[str, str]) -> None:
    files = [INSTALLED / name for name in pages]
    groff = subprocess.run(["groff", "-man", "-ww", "-z", *files], capture_output=True, check=True)
    assert groff.stderr == b""
    lint = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *files], capture_output=True, check=False
    )
    # a page is not of a day: it is rendered again whenever an option changes
    lines = [line for line in lint.stdout.splitlines() if b"missing date" not in line]
    assert lines == []


def shown(name: str) -> str:
    command = ["mandoc", "-Tutf8", str(INSTALLED / name)]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    return re.sub("(?s).\x08", "", text.decode())  # bold is printed twice


def test_every_command_has_a_page(pages: dict[str, str]) -> None:
    names = [f"cas-{c.name}" for c in cas.COMMANDS] + [f"etrace-{c.name}" for c in main.COMMANDS]
    names += [
        f"etrace-{f}-{c.name}" for f, each in declarations.FAMILIES.items() for c in each.COMMANDS
    ]
    assert [name for name in names if f"man1/{name}.1" not in pages] == []
    assert "trace a command and everything it starts" in shown("man1/etrace-run.1")
    assert "--ordered" in shown("man1/cas-deps.1")


def test_pages_refer_to_pages_that_are_there(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for other, section in re.findall(r"(?m)^\.BR (\S+) \((\d)\)", text):
            place = f"man{section}/{other.replace(chr(92), '')}.{section}"
            assert place in pages, f"{name} refers to {place}"
    assert "etrace-run(1)" in shown("man1/etrace.1")
    assert "cas-deps(1)" in shown("man1/cas.1")


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


def test_examples_keep_their_lines() -> None:
    lines = [line.strip() for line in shown("man1/etrace-xray.1").splitlines()]
    first = lines.index("etrace xray account -m PROGRAM xray-log.PROGRAM.*")
    assert lines[first + 1] == "etrace xray flame -m PROGRAM xray-log.PROGRAM.* -o flame.html"
