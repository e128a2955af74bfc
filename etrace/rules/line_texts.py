# SPDX-License-Identifier: Apache-2.0
"""Lines of recipes as makefiles have them -> which commands each may have become.

A line is known before its variables are expanded. Each variable may stand for any text, and blanks
and quotes do not count, because make starts a simple command without a shell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

#: what make does not give the shell
_PREFIX = re.compile(r"^[\s@+-]+")
_VARIABLE = re.compile(r"\$\$|\$(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\{[^{}]*\}|[^$])")
DOLLAR = "$$"
_TARGET = re.compile(r"\$\$|\$@|\$\(@\)|\$\{@\}")
_LEFT_OUT = re.compile(r"[\s'\"\\]+")


def parts_of(line: str, target: str | None = None) -> list[str]:
    """Return the texts of a line between its variables, each of which may stand for any text.

    `target` is what `$@` stands for, when it is known.
    """
    literal = _PREFIX.sub("", line)
    if target is not None:
        own = target.replace("$", DOLLAR)
        literal = _TARGET.sub(lambda found: DOLLAR if found[0] == DOLLAR else own, literal)
    parts, at = list[str](), 0
    for found in _VARIABLE.finditer(literal):
        if found[0] == DOLLAR:
            continue
        parts.append(without_blanks(literal[at : found.start()]))
        at = found.end()
    return [*parts, without_blanks(literal[at:])]


def without_prefix(line: str) -> str:
    """Return a line without what says how make runs it."""
    return _PREFIX.sub("", line)


def literal_of(line: str) -> str:
    """Return what is left of a line without variables, blanks and what make does not pass on."""
    text = _VARIABLE.sub(lambda found: DOLLAR if found[0] == DOLLAR else "", line)
    return re.sub(r"[\s@+-]", "", text)


def command_text(words: list[str]) -> str:
    """Return a command that make started as parts_of() has lines: the shell's, or its words."""
    is_of_shell = len(words) > 2 and words[1].startswith("-") and words[1].endswith("c")
    return without_blanks(_PREFIX.sub("", words[2] if is_of_shell else " ".join(words)))


def may_be(text: str, parts: list[str]) -> bool:
    """Return whether a command may be a line; in time by the length of the text."""
    if len(parts) == 1:
        return text == parts[0]
    end = len(text) - len(parts[-1])
    if len(parts[0]) > end or not text.startswith(parts[0]) or not text.endswith(parts[-1]):
        return False
    return has_in_order(text, parts[1:-1], len(parts[0]), end)


def has_in_order(whole: str, parts: Iterable[str], at: int, end: int) -> bool:
    """Return whether a text has these parts in their order, each where it is first.

    That takes time by the length of the text only.
    """
    for part in parts:
        at = whole.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


class Lines(Generic[T]):
    """Lines, each of somebody, by what they have before and after all variables."""

    def __init__(self, lines: Iterable[tuple[str, T]]) -> None:
        found: dict[str, set[T]] = defaultdict(set)
        for line, owner in lines:
            found[line].add(owner)
        self._whole: dict[str, set[T]] = defaultdict(set)
        self._by_ends: dict[tuple[str, str], list[tuple[list[str], set[T]]]] = defaultdict(list)
        for line, owners in found.items():
            parts = parts_of(line)
            if len(parts) == 1:
                self._whole[parts[0]] |= owners
            else:
                self._by_ends[parts[0], parts[-1]].append((parts[1:-1], owners))
        self._lengths = {(len(first), len(last)) for first, last in self._by_ends}

    def with_command(self, text: str) -> frozenset[T]:
        """Return whose lines a command can be, by its text of command_text()."""
        found = set(self._whole.get(text, ()))
        for n_first, n_last in self._lengths:
            end = len(text) - n_last
            if n_first > end:
                continue
            for middle, owners in self._by_ends.get((text[:n_first], text[end:]), ()):
                if not owners <= found and has_in_order(text, middle, n_first, end):
                    found |= owners
        return frozenset(found)


def without_blanks(text: str) -> str:
    """Return a text without blanks, quotes and backslashes."""
    return _LEFT_OUT.sub("", text.replace(DOLLAR, "$"))
