# SPDX-License-Identifier: Apache-2.0
"""A Makefile of traced commands: GNU make itself says whether it runs them unchanged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import databases
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from libetrace.image.file import Image

from etrace.export.makefile import Rule, lines, makefile
from etrace.nfsdb.store import open_database
from etrace.query.executions import commands

SHOW = "import json, os, sys; print(json.dumps([os.getcwd(), *sys.argv[1:]]))"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return open_database(databases.write_database(tmp_path_factory.mktemp("build")))


def run(text: bytes, *arguments: str) -> str:
    command = ["make", "-s", "--no-print-directory", "-f", "-", *arguments]
    return subprocess.run(command, input=text, check=True, capture_output=True).stdout.decode()


def test_compilations_run_by_the_compiler_that_is_asked_for(image: Image) -> None:
    text = makefile(image, commands(image, databases.of_compilers()))
    assert text.decode() == (
        "# Commands of a traced build. Options for all of them: ADDITIONAL_OPTS_PREFIX, _POSTFIX.\n"
        "CC = gcc\nADDITIONAL_OPTS_PREFIX =\nADDITIONAL_OPTS_POSTFIX =\n\n"
        ".PHONY: all comp_0 comp_1\nall: comp_0 comp_1\n\n"
        "comp_0:\n\tcd /src && $(CC) $(ADDITIONAL_OPTS_PREFIX) -DN=1 -UM -c main.c"
        " $(ADDITIONAL_OPTS_POSTFIX)\n\n"
        "comp_1:\n\tcd /src && $(CC) $(ADDITIONAL_OPTS_PREFIX) -c util.c"
        " $(ADDITIONAL_OPTS_POSTFIX)\n"
    )


def test_make_prints_the_commands_of_the_build(image: Image) -> None:
    text = makefile(image, commands(image), static=True)
    shown = run(text, "-n", "all").splitlines()
    argvs = [argv for _, _, argv, _ in databases.COMMANDS.values()]
    assert [line.split("&&")[1].split() for line in shown] == argvs
    shown = run(makefile(image, commands(image)), "-n", "comp_1", "CC=clang",
                "ADDITIONAL_OPTS_POSTFIX=-w").split()  # fmt: skip
    assert shown == ["cd", "/src", "&&", "clang", "-c", "util.c", "-w"]


ODD = ["$", "$$HOME", "a b", "it's", '"', "#x", "\\", "\\\n", "a\nb\n", "\t", ";|&", "*", "%", "ż"]


TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)


@example(ODD)
@given(st.lists(TEXT, max_size=20))
@settings(deadline=None, max_examples=20)
def test_every_argument_arrives_as_it_was(arguments: Sequence[str]) -> None:
    rule = Rule("cmd_0", "/", [sys.executable, "-c", SHOW, *arguments])
    text = "\n".join(lines([rule], {})) + "\n"
    assert json.loads(run(text.encode())) == ["/", *arguments]


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "a $b\n'c#"
    odd.mkdir()
    text = "\n".join(lines([Rule("cmd_0", str(odd), [sys.executable, "-c", SHOW])], {})) + "\n"
    assert json.loads(run(text.encode())) == [str(odd)]
