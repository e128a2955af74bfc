# SPDX-License-Identifier: Apache-2.0
"""`cas`: which words of a command line are modules, and what passes between them."""

from __future__ import annotations

import argparse
import importlib

import pytest

from etrace.cli import cas
from etrace.cli.options import add_paths
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
    assert error.value.message == "no module 'ref_fles'"
    assert error.value.hint.startswith("did you mean ref_files")


def test_every_name_belongs_to_one_command() -> None:
    names = [name for c in cas.COMMANDS for name in (c.name, *c.aliases)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("command", cas.COMMANDS, ids=lambda c: c.name)
def test_every_command_keeps_the_protocol(command: cas.CasCommand) -> None:
    module = importlib.import_module(command.module)
    made = cas.make_parser(command, module)
    assert made.prog == f"cas {command.name}"
    assert callable(module.answer if command in cas.QUERIES else module.run)
