# SPDX-License-Identifier: Apache-2.0
"""Declarations of the programs -> scripts that complete them in bash, zsh and fish."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from etrace.capture.kmod import collector
from etrace.cli.manual.declarations import (
    Command,
    Kind,
    Option,
    Program,
    etrace_cat,
    etraced,
    programs,
)
from etrace.render import render

TEMPLATES = Path(__file__).with_name("templates")


def quote(text: str) -> str:
    """Return one word for any of the three shells; fish alone would read a backslash in quotes."""
    return shlex.quote(" ".join(text.replace("\\", "/").split()))


def common(program: Program) -> tuple[Option, ...]:
    """Return the options that may be before and after every query."""
    queries = [set(command.options) for command in program.commands if command.is_query]
    shared = set.intersection(*queries) if queries else set()
    return tuple(option for option in program.body.options if option in shared)


def own(command: Command, shared: Iterable[Option]) -> list[Option]:
    """Return the options of a command that are not `shared` by all queries."""
    known = set(shared) if command.is_query else set()
    return [option for option in command.options if option not in known]


def names(options: Iterable[Option], which: str = "all") -> str:
    """Return the names of options between blanks; `which` may be `valued`: with a value."""
    chosen = (o for o in options if which == "all" or o.kind is not Kind.NONE)
    return " ".join(name for option in chosen for name in option.names)


def command_names(program: Program) -> str:
    """Return the names and aliases of all first words between blanks."""
    first = (command for command in program.commands if not command.parent)
    return " ".join(name for command in first for name in command.names)


def query_names(program: Program) -> str:
    """Return the names and aliases of all queries."""
    return " ".join(n for command in program.commands if command.is_query for n in command.names)


def takes_files(command: Command) -> bool:
    """Return whether a query takes FILEs; shells complete the linked modules."""
    return command.is_query and any(o.kind is Kind.FILE for o in command.arguments)


def described(options: Iterable[Option]) -> list[str]:
    """Return `name:help` of each option, quoted, as zsh's _describe takes them."""
    return [quote(f"{name}:{o.help}") for o in options for name in o.names]


def script(shell: str) -> str:
    """Return the script of a shell: `bash`, `zsh` or `fish`."""
    functions = (
        common, own, names, described, quote, command_names, query_names, takes_files,
    )  # fmt: skip
    values: dict[str, Any] = {function.__name__: function for function in functions}
    declared = (*programs(), etrace_cat(collector.program()), etraced())
    values |= {"programs": declared, "Kind": Kind}
    return render(TEMPLATES / f"completion.{shell}.j2", values)
