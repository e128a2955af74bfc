# SPDX-License-Identifier: Apache-2.0
"""The parameters of a request -> the words of a `cas` command line.

Every word is `--option` or `--option=value` of a known option, so no value can become an option, a
module or a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from etrace.cli.serve.endpoints import MAX_PAGE_SIZE, PAGE_SIZE, Endpoint, Kind, Parameter
from etrace.errors import EtraceError

TRUE, FALSE = ("", "1", "true"), ("0", "false")


def words_of(endpoint: Endpoint, given: Iterable[tuple[str, str]]) -> list[str]:
    """Return the words behind the query's name; EtraceError names a wrong parameter."""
    pairs = [(endpoint.parameter(name), value) for name, value in given]
    _refuse_repeated(pairs)
    words = [word for parameter, value in pairs for word in _words(parameter, value)]
    names = {parameter.name for parameter, _ in pairs}
    if "entries-per-page" not in names:
        words.append(f"--entries-per-page={PAGE_SIZE}")
    return words


def _refuse_repeated(pairs: Iterable[tuple[Parameter, str]]) -> None:
    seen = set()
    for parameter, _ in pairs:
        if parameter.name in seen and not parameter.is_repeated:
            raise EtraceError(f"{parameter.name}: given twice", "give it once")
        seen.add(parameter.name)


def _words(parameter: Parameter, value: str) -> Iterator[str]:
    if "\0" in value:
        raise EtraceError(f"{parameter.name}: a NUL byte", "no file or text here has one")
    if parameter.kind is Kind.FLAG:
        yield from _flag(parameter, value)
        return
    if parameter.choices and value not in parameter.choices:
        raise EtraceError(f"{parameter.name}: {value!r} is none of {', '.join(parameter.choices)}")
    if parameter.name == "entries-per-page":
        _check_page_size(value)
    yield f"{parameter.option}={value}"


def _flag(parameter: Parameter, value: str) -> Iterator[str]:
    if value in TRUE:
        yield parameter.option
    elif value not in FALSE:
        raise EtraceError(f"{parameter.name}: {value!r} is neither true nor false")


def _check_page_size(value: str) -> None:
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MAX_PAGE_SIZE):
        raise EtraceError(f"entries-per-page: {value!r} is not a number from 1 to {MAX_PAGE_SIZE}")
