# SPDX-License-Identifier: Apache-2.0
"""The words and variables of a make -> where it works, and the makefiles that they name.

Options are those of GNU make 4.2 to 4.4 (its manual: "Summary of Options"), as getopt_long() reads
them: in one word or two, long ones also cut short.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from etrace.check.rules.rule import Rules

#: short options whose value is the rest of the word or the next word; or the rest only
_WITH_VALUE, _WITH_REST = "CfIWoE", "jlO"
#: long ones, by the short one
_LONG = {
    "directory": "C", "file": "f", "makefile": "f", "include-dir": "I", "what-if": "W",
    "new-file": "W", "assume-new": "W", "old-file": "o", "assume-old": "o", "eval": "E",
}  # fmt: skip
#: a line of `make --debug=v`, printed before the file is read
_READING = re.compile(r"^Reading makefile '(.*?)'(?: \(.*\))*\.\.\.", re.MULTILINE)


def places(
    words: Sequence[bytes], environment: Mapping[bytes, bytes], directory: Path
) -> tuple[Path, list[Path]]:
    """Return the directory where a make works, and what its words and variables have it read."""
    place, named = directory, list[str]()
    for option, value in _options([os.fsdecode(word) for word in words]):
        if option == "C":
            place /= value
        elif option in ("f", "I"):
            named.append(value)
    flags = os.fsdecode(environment.get(b"MAKEFLAGS", b"")).split()
    named += [value for option, value in _options(flags) if option in ("f", "I")]
    named += os.fsdecode(environment.get(b"MAKEFILES", b"")).split()
    return place, [place / name for name in named]


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            known = {short for long, short in _LONG.items() if name and long.startswith(name)}
            if len(known) == 1:
                yield known.pop(), value if equals else next(rest, "")
            continue
        if not word.startswith("-"):
            continue
        for number, letter in enumerate(word[1:], 2):
            if letter in _WITH_VALUE:
                yield letter, word[number:] or next(rest, "")
            if letter in _WITH_VALUE + _WITH_REST:
                break


def makefiles_read(text: str, rules: Rules | None, place: Path) -> set[Path]:
    """Return the makefiles that make has read, as it said itself and as it lists them."""
    names = _READING.findall(text)
    listed = rules.makefiles if rules is not None else ()
    return {place / name for name in (*names, *listed)}
