# SPDX-License-Identifier: Apache-2.0
"""`cas`: which words of a command line are modules, and what passes between them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import databases
import pytest

from etrace.cli.cas import program as cas
from etrace.cli.options.common import add_paths
from etrace.errors import UsageError


def parser() -> argparse.ArgumentParser:
    made = cas.common_parser()
    add_paths(made, positional=True)
    return made


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ([], 0),
        (["refs"], 0),
        (["--json", "refs", "-s"], 1),
        (["--path", "refs", "refs"], 2),
        (["--path=x", "refs"], 1),
        (["-n", "5", "a.c", "ref_files"], 3),
        (["--", "refs"], 2),
        (["--path"], 1),
    ],
)
def test_a_name_is_a_module_unless_an_option_takes_it(words: list[str], at: int) -> None:
    assert cas.split(parser(), words) == at


def test_an_unknown_module_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(UsageError) as error:
        cas.find("ref_fles")
    assert error.value.message == "no command 'ref_fles'"
    assert error.value.hint.startswith("did you mean ref-files")


def test_every_name_belongs_to_one_command() -> None:
    names = [name for c in cas.COMMANDS for name in (c.name, *c.aliases)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("command", cas.COMMANDS, ids=lambda c: c.name)
def test_every_command_keeps_the_protocol(command: cas.CasCommand) -> None:
    module = command.load()
    made = cas.make_parser(command, module)
    assert made.prog == f"cas {command.name}"
    assert callable(module.answer if command in cas.QUERIES else module.run)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_DIR", str(databases.write_database(tmp_path)))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["refs", "-f", "[path=util.o]and[access=w]", "faccess"], "--filter"),
        (["refs", "--command-filter", "[bin=/ld]", "execs"], "--command-filter"),
        (["refs", "-f", "[path=util.o]", "faccess"], ""),
        (["refs", "-f", "[access=w]", "faccess", "-f", "[access=w]"], ""),
        (["refs", "-f", "[access=w]", "lm"], ""),
        (["execs", "--command-filter", "[bin=/ld]", "refs"], ""),
    ],
)
def test_a_filter_that_does_not_reach_what_is_shown_is_reported(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas.main(words) == 0
    name = cas.find(words[-1]).name if option else ""
    reported = (
        f"cas: {option} selected files, and {name} takes all opens of them."
        f" To filter those opens, put {option} after {name}.\n"
    )
    assert capsys.readouterr().err == (reported if option else "")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("module", ["faccess", "refs"])
def test_a_file_may_be_named_without_an_option(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas.main([module, "main.o", "--json", "--details"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["filename"] for each in found["entries"]} == {"/src/main.o"}


def test_help_begins_with_what_the_program_does() -> None:
    assert "\n\nQuery the database of a build.\n\n" in cas.top_parser().format_help()
