# SPDX-License-Identifier: Apache-2.0
"""The queries that can be asked over HTTP, and their parameters: declarations of `cas` as data.

A query or an option that opens files which its user names, writes one, or prints what is not JSON
is left out.
"""

from __future__ import annotations

import argparse
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from etrace.cli.cas import program
from etrace.errors import EtraceError

#: queries that read files beside the database or in directories that their user names
LEFT_OUT = frozenset(("unused", "config", "compiler_pattern", "linker_pattern"))
#: destinations of options about files, other forms of output, and the server's own decisions
OPTIONS_LEFT_OUT = frozenset(
    ("help", "database", "output", "json", "nul", "fmt", "dot", "existing", "generate", "makefile",
     "static", "all", "diff")
)  # fmt: skip
PAGE_SIZE, MAX_PAGE_SIZE = 1000, 100_000


class Kind(enum.Enum):
    """What values a parameter takes, as OpenAPI names it."""

    FLAG = "boolean"
    NUMBER = "integer"
    TEXT = "string"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query; `option` is the option that it becomes."""

    name: str
    option: str
    kind: Kind
    is_repeated: bool
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One query."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter; EtraceError names the nearest ones."""
        for each in self.parameters:
            if each.name == name:
                return each
        from etrace.alike import suggestion

        known = [each.name for each in self.parameters]
        raise EtraceError(f"{self.name} has no parameter {name!r}", suggestion(name, known))


def _kind(action: argparse.Action) -> Kind:
    if action.nargs == 0:
        return Kind.FLAG
    is_number = isinstance(action.default, int) and not isinstance(action.default, bool)
    return Kind.NUMBER if is_number else Kind.TEXT


def _is_append(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction)  # argparse has no public way to ask


def _parameter(action: argparse.Action) -> Parameter:
    option = next(name for name in action.option_strings if name.startswith("--"))
    choices = action.choices or getattr(action.type, "words", None) or ()
    return Parameter(
        option.removeprefix("--"),
        option,
        _kind(action),
        _is_append(action),
        tuple(map(str, choices)),
        (action.help or "") % vars(action),
    )


def _is_offered(action: argparse.Action) -> bool:
    is_long = any(name.startswith("--") for name in action.option_strings)
    return is_long and action.dest not in OPTIONS_LEFT_OUT and action.help != argparse.SUPPRESS


def _endpoint(command: program.CasCommand) -> Endpoint:
    parser = program.make_parser(command, command.load())
    offered = [action for action in parser._actions if _is_offered(action)]
    return Endpoint(command.name, command.summary, tuple(map(_parameter, offered)))


@cache
def endpoints() -> dict[str, Endpoint]:
    """Return every query by its name; imports them all."""
    queries: Sequence[program.CasCommand] = program.QUERIES
    return {each.name: _endpoint(each) for each in queries if each.name not in LEFT_OUT}
