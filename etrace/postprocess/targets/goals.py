# SPDX-License-Identifier: Apache-2.0
"""The command line of make or ninja -> what it was asked for.

Sources: `switches` of GNU make's main.c (4.3 and 4.4), `ReadFlags` of ninja.cc (1.11 to 1.13). Both
permute words as getopt_long does. No variable of the environment names goals, so the words are all
there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Builder:
    """A program that runs commands for targets.

    `valued` take the next word when nothing follows them in their own; `counted` do so when it is
    a number; `joined` take only what follows in their own word. With `ending` nothing is built.
    """

    valued: bytes
    counted: bytes
    joined: bytes
    ending: frozenset[bytes]
    valued_long: frozenset[bytes]
    counted_long: frozenset[bytes]
    has_variables: bool


MAKE = Builder(
    b"CfIoWE", b"jl", b"O", frozenset((b"v", b"h")),
    frozenset(
        b"directory file makefile include-dir old-file assume-old what-if new-file assume-new eval"
        b"".split()
    ),
    frozenset((b"jobs", b"load-average", b"max-load")),
    has_variables=True,
)  # fmt: skip
NINJA = Builder(
    b"Cfjkldw", b"", b"", frozenset((b"h", b"t")), frozenset(), frozenset(), has_variables=False
)
#: names of the files of programs
BUILDERS = {b"make": MAKE, b"gmake": MAKE, b"ninja": NINJA, b"ninja-build": NINJA, b"samu": NINJA}


class _NoGoalsError(Exception):
    """The words are not those of a build, or not all of them are understood."""


def find_goals(builder: Builder, argv: Sequence[bytes]) -> list[bytes]:
    """Return the goals of a command line; empty too when it has a word that is not understood."""
    try:
        return list(_goals(builder, iter(argv[1:])))
    except _NoGoalsError:
        return []


def _goals(builder: Builder, words: Iterator[bytes]) -> Iterator[bytes]:
    pushed: list[bytes] = []
    only_goals = False
    while True:
        word = pushed.pop() if pushed else next(words, None)
        if word is None:
            return
        if word == b"--" and not only_goals:
            only_goals = True
        elif only_goals or not word.startswith(b"-") or word == b"-":
            if word and not (builder.has_variables and b"=" in word):
                yield word
        elif word.startswith(b"--"):
            pushed += _skip_long(builder, word[2:], words)
        else:
            pushed += _skip_short(builder, word[1:], words)


def _skip_long(builder: Builder, word: bytes, words: Iterator[bytes]) -> list[bytes]:
    """Skip the value of a long option; return the next word when it is not that."""
    name, equals, _ = word.partition(b"=")
    taking = builder.valued_long | builder.counted_long
    if name in (b"help", b"version"):
        raise _NoGoalsError
    if name not in taking and any(each.startswith(name) for each in taking):
        raise _NoGoalsError  # shortened: which one is meant depends on the version
    if equals or name not in taking:
        return []
    word_after = next(words, None)
    return _unless_number(word_after) if name in builder.counted_long else []


def _skip_short(builder: Builder, letters: bytes, words: Iterator[bytes]) -> list[bytes]:
    """Skip a word of options and their value; return the next word when it is not of them."""
    for i in range(len(letters)):
        letter, rest = letters[i : i + 1], letters[i + 1 :]
        if letter in builder.ending:
            raise _NoGoalsError
        if letter in builder.joined:
            return []
        if letter in builder.valued:
            if not rest:
                next(words, None)
            return []
        if letter in builder.counted:
            return [] if rest else _unless_number(next(words, None))
    return []


def _unless_number(word: bytes | None) -> list[bytes]:
    return [] if word is None or word[:1].isdigit() else [word]
