# SPDX-License-Identifier: Apache-2.0
"""A tool's option table and an argv -> what each argument means.

A table comes from TOML: a meaning and the forms of the options that have it, as a manual writes
them. `-I ARG` takes the next argument, `-IARG` the rest of this one, `-c` nothing; an option with
several forms is listed with each. What no form fits and begins with `-` is an unknown flag, all
else is an input. Exact forms win over joined ones, longer joined ones over shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

ARG = "ARG"
INPUT = "input"
UNKNOWN = ""
#: a build of the Linux kernel has 20,000 different arguments
MAX_REMEMBERED = 1 << 17


class Argument(NamedTuple):
    """One option or input: `value` is empty for a flag, and the argument itself for an input."""

    meaning: str
    flag: bytes
    value: bytes


class Form(Enum):
    """How an option takes its argument."""

    FLAG = "-c"
    SEPARATE = "-I ARG"
    JOINED = "-IARG"


def split_form(text: str) -> tuple[bytes, Form]:
    """Return the flag and the form of an option as TOML spells it, `-I ARG`."""
    if text.endswith(" " + ARG):
        return text[: -len(ARG) - 1].encode(), Form.SEPARATE
    if text.endswith(ARG):
        return text[: -len(ARG)].encode(), Form.JOINED
    return text.encode(), Form.FLAG


class Options:
    """The options of one tool. Classified arguments are remembered: builds repeat them."""

    __slots__ = ("_exact", "_joined", "_lengths", "_memo", "forms")

    def __init__(self, forms: Mapping[str, str]) -> None:
        """`forms`: option as TOML spells it -> meaning."""
        self.forms = dict(forms)
        self._exact: dict[bytes, tuple[str, bool]] = {}
        self._joined: dict[bytes, str] = {}
        for text, meaning in forms.items():
            flag, form = split_form(text)
            if form is Form.JOINED:
                self._joined[flag] = meaning
            else:
                self._exact[flag] = (meaning, form is Form.SEPARATE)
        self._lengths = sorted({len(flag) for flag in self._joined}, reverse=True)
        self._memo: dict[bytes, tuple[Argument, bool]] = {}

    def parse(self, argv: Iterable[bytes]) -> list[Argument]:
        """Return what the arguments mean, in order; `argv` is without the program's name."""
        out: list[Argument] = []
        memo, rest = self._memo, iter(argv)
        for text in rest:
            argument, is_separate = memo.get(text) or self._classify(text)
            if is_separate:
                value = next(rest, None)
                if value is None:  # the tool will complain
                    break
                argument = Argument(argument.meaning, argument.flag, value)
            out.append(argument)
        return out

    def located(self, argv: Sequence[bytes]) -> list[tuple[range, Argument]]:
        """Return what the arguments mean, each with its places in `argv`."""
        out, at = [], 0
        while at < len(argv):
            argument, is_separate = self._memo.get(argv[at]) or self._classify(argv[at])
            places = range(at, min(at + 1 + is_separate, len(argv)))
            if is_separate and len(places) > 1:
                argument = Argument(argument.meaning, argument.flag, argv[at + 1])
            out.append((places, argument))
            at = places.stop
        return out

    def _classify(self, text: bytes) -> tuple[Argument, bool]:
        if len(self._memo) >= MAX_REMEMBERED:  # a response file may hold millions
            self._memo.clear()
        self._memo[text] = found = self._look_up(text)
        return found

    def _look_up(self, text: bytes) -> tuple[Argument, bool]:
        exact = self._exact.get(text)
        if exact is not None:
            return Argument(exact[0], text, b""), exact[1]
        for length in self._lengths:
            meaning = self._joined.get(text[:length])
            if meaning is not None and len(text) > length:
                return Argument(meaning, text[:length], text[length:]), False
        if text.startswith(b"-") and text != b"-":
            return Argument(UNKNOWN, text, b""), False
        return Argument(INPUT, b"", text), False


def values(arguments: Sequence[Argument], *meanings: str) -> list[bytes]:
    """Return the values of the arguments that have one of these meanings, in order."""
    return [argument.value for argument in arguments if argument.meaning in meanings]
