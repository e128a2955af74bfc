# SPDX-License-Identifier: Apache-2.0
"""Executions -> a Makefile that runs them again, in the order in which they began.

Each is a rule of its own: `make comp_3`, `make -j8`, `make CC=clang ADDITIONAL_OPTS_POSTFIX=-w`.
Commands of the build's usual C compiler run $(CC), those of its C++ compiler $(CXX). All others,
and all with `static`, run the name that the build used. Escapes: GNU make manual 3.1 ($) and 5.1
(recipes), POSIX shell 2.2 (quotes).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from libetrace.image.file import Image

from etrace.query.rows.records import Records

VARIABLES = {"c": "CC", "c++": "CXX"}
#: what would end the line of a command -> the shell gets it in a variable, which is set like this
BREAKS = {
    "\n": ('"$$nl"', r"nl=$$(printf '\n_'); nl=$${nl%_}; "),
    "\r": ('"$$cr"', r"cr=$$(printf '\r'); "),
}
_BEFORE, _BEHIND = "$(ADDITIONAL_OPTS_PREFIX)", "$(ADDITIONAL_OPTS_POSTFIX)"
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """One execution: what it was called with, where, and the variable for its argv[0], if any."""

    name: str
    directory: str
    argv: Sequence[str]
    variable: str = ""


def quote(text: str) -> str:
    """Return a word for a command of make or ninja, which see no $ and no newline in it.

    The shell sees `text`. A command with such words needs set_breaks() of it in front.
    """
    if _PLAIN.fullmatch(text):
        return text
    pieces = re.split("([\n\r])", text)
    return "".join(
        BREAKS[piece][0] if piece in BREAKS else shlex.quote(piece).replace("$", "$$")
        for piece in pieces
    )


def set_breaks(command: str) -> str:
    """Return what sets the variables of line breaks that the quoted words of a command need."""
    return "".join(setting for variable, setting in BREAKS.values() if variable in command)


def _recipe(rule: Rule) -> str:
    program = f"$({rule.variable})" if rule.variable else quote(rule.argv[0])
    words = [program, _BEFORE, *map(quote, rule.argv[1:]), _BEHIND]
    command = f"cd {quote(rule.directory)} && {' '.join(words)}"
    return f"\t{set_breaks(command)}{command}"


def lines(rules: Sequence[Rule], variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the Makefile line by line; `variables` are set at its top."""
    yield "# Commands of a traced build. Options for all of them: ADDITIONAL_OPTS_PREFIX, _POSTFIX."
    yield from (f"{name} = {program.replace('$', '$$')}" for name, program in variables.items())
    yield "ADDITIONAL_OPTS_PREFIX ="
    yield "ADDITIONAL_OPTS_POSTFIX ="
    names = " ".join(rule.name for rule in rules)
    yield ""
    yield f".PHONY: all {names}".rstrip()
    yield f"all: {names}".rstrip()
    for rule in rules:
        yield ""
        yield f"{rule.name}:"
        yield _recipe(rule)


def _in_order(image: Image, rows: Iterable[int]) -> list[int]:
    start = image["executions"]["start_ns"]
    return sorted(rows, key=lambda row: (start[row], row))


def _argv(records: Records, row: int) -> list[str]:
    """Return the arguments of an execution after a name by which a shell finds its program."""
    argv = records.argv(row)
    binary = records.path(records.image["executions"]["binary"][row])
    if argv and "/" not in argv[0] and binary and PurePosixPath(binary).name != argv[0]:
        return [binary, *argv[1:]]
    return argv


def _most_used(languages: Mapping[int, str], argvs: Mapping[int, list[str]]) -> dict[str, str]:
    """Return variable -> the program that compiled most in its language."""
    used: dict[str, Counter[str]] = {}
    for row, language in languages.items():
        if language in VARIABLES and _PLAIN.fullmatch(argvs[row][0]):
            used.setdefault(VARIABLES[language], Counter())[argvs[row][0]] += 1
    return {name: counter.most_common(1)[0][0] for name, counter in sorted(used.items())}


def makefile(image: Image, rows: Iterable[int], *, static: bool = False) -> bytes:
    """Return the Makefile of executions (rows): `comp_N` those that compiled, `cmd_N` all others.

    Executions without a program or arguments are left out. The table `compilations` says which
    ones compiled.
    """
    records = Records(image)
    argvs = {row: argv for row in _in_order(image, rows) if (argv := _argv(records, row))}
    compiled = records.kinds.compilations if records.kinds.are_known else {}
    languages = {row: records.language(compiled[row]) for row in argvs if row in compiled}
    variables = {} if static else _most_used(languages, argvs)
    rules = []
    counts: Counter[str] = Counter()
    for row, argv in argvs.items():
        kind = "comp" if row in languages else "cmd"
        variable = VARIABLES.get(languages.get(row, ""), "")
        if variables.get(variable) != argv[0]:
            variable = ""
        rules.append(Rule(f"{kind}_{counts[kind]}", records.directory(row), argv, variable))
        counts[kind] += 1
    text = "\n".join(lines(rules, variables)) + "\n"
    return text.encode("utf-8", "surrogateescape")
