# SPDX-License-Identifier: Apache-2.0
"""The queries that can be asked over HTTP, and their parameters: declarations of `cas` as data.

A query or an option that opens files which its user names, writes one, or prints what is not JSON
is left out.

The parameters of a request become words of a command line: `--option` or `--option=value` of a
known option, so no value can become an option, a query or a file.
"""

from __future__ import annotations

import argparse
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from etrace.cli import spellings
from etrace.cli.cas import program
from etrace.errors import EtraceError
from etrace.query.select.filters import truth

#: queries that read files in directories that their user names
LEFT_OUT = frozenset(("unused",))
#: parts of `cas info` that are in the database; the others are in files beside it
FACTS = ("counts", "root-pid", "source-root", "versions")
#: destinations of options about files, other forms of output, and the server's own decisions
OPTIONS_LEFT_OUT = frozenset(
    ("help", "database", "output", "format", "nul", "fmt", "dot", "existing", "generate",
     "makefile", "static", "all", "diff")
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
    words: tuple[str, ...]  #: of the command line, before those of the parameters

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
    words = (command.name, *(FACTS if command.name == "info" else ()))
    return Endpoint(command.name, command.summary, tuple(map(_parameter, offered)), words)


@cache
def endpoints() -> dict[str, Endpoint]:
    """Return every query by its name; imports them all."""
    return {each.name: _endpoint(each) for each in program.QUERIES if each.name not in LEFT_OUT}


def find(name: str) -> Endpoint | None:
    """Return the query of a name, also of one that is not shown (etrace/cli/spellings.py)."""
    part = spellings.FACTS.get(name, "")
    if part in FACTS:
        return replace(endpoints()["info"], name=name, words=("info", part))
    return endpoints().get(name) or endpoints().get(name.replace("_", "-"))


# ---- a request as words ----


def words_of(endpoint: Endpoint, given: Iterable[tuple[str, str]]) -> list[str]:
    """Return the words after the query's name; EtraceError names a wrong parameter."""
    pairs = [(endpoint.parameter(name), value) for name, value in given]
    _refuse_repeated(pairs)
    return [word for parameter, value in pairs for word in _words(parameter, value)]


def _refuse_repeated(pairs: Iterable[tuple[Parameter, str]]) -> None:
    seen = set()
    for parameter, _ in pairs:
        if parameter.name in seen and not parameter.is_repeated:
            raise EtraceError(f"{parameter.name}: given twice", "give it once")
        seen.add(parameter.name)


def _words(parameter: Parameter, value: str) -> Iterator[str]:
    if "\0" in value:
        raise EtraceError(
            f"{parameter.name}: contains a NUL byte", "remove it: no path or pattern has one"
        )
    if parameter.kind is Kind.FLAG:
        yield from _flag(parameter, value)
        return
    if parameter.choices and value not in parameter.choices:
        raise EtraceError(
            f"{parameter.name}: {value!r} is not one of {', '.join(parameter.choices)}"
        )
    if parameter.name == "entries-per-page":
        _check_page_size(value)
    yield f"{parameter.option}={value}"


def _flag(parameter: Parameter, value: str) -> Iterator[str]:
    try:
        is_on = truth(value or "true")  # `?details` alone
    except EtraceError as error:
        raise EtraceError(f"{parameter.name}: {error.message}", error.hint) from None
    if is_on:
        yield parameter.option


def _check_page_size(value: str) -> None:
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MAX_PAGE_SIZE):
        raise EtraceError(f"entries-per-page: {value!r} is not a number from 1 to {MAX_PAGE_SIZE}")
