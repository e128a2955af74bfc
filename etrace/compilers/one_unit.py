# SPDX-License-Identifier: Apache-2.0
"""A compiler's argv -> that for one of its sources, or for a header.

`gcc -c a.c b.c` compiles each source by itself, with the same options: other tools get
of a.c `gcc -c a.c`. Compilers whose sources are one unit (javac, rustc) are left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from etrace.compilers.invocation import read_invocation
from etrace.compilers.options import INPUT, Argument
from etrace.compilers.tools import Tool

#: meanings of options that name what a compilation writes, or how far it goes
_WRITES = frozenset(("output", "depfile", "compile", "assemble", "check", "language"))
#: gcc's options that write dependencies
_DEPENDENCIES = frozenset((b"-MD", b"-MMD", b"-MP", b"-MG", b"-MT", b"-MQ", b"-MJ"))
#: how -x calls a header, by language
HEADERS = {
    "c": b"c-header",
    "c++": b"c++-header",
    "objective-c": b"objective-c-header",
    "objective-c++": b"objective-c++-header",
}


def sources(tool: Tool, words: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the name of each source; `words` are without the program's name."""
    invocation = read_invocation(tool, words)
    if invocation is None:
        return
    names = {source.name for source in invocation.sources}
    named = (INPUT, "source", "source-c", "source-c++")
    for places, argument in tool.options.located(words):
        if argument.meaning in named and argument.value in names:
            yield places[-1], argument.value


def without(tool: Tool, words: Sequence[bytes], places: Collection[int]) -> list[bytes]:
    """Return `words` without the sources at some places; unchanged when they are one unit.

    An option that names a source (`/Tp FILE`) goes with it.
    """
    if not tool.settings.get("separate_units"):
        return list(words)
    kept = (each for each, _ in tool.options.located(words) if each[-1] not in places)
    return [words[at] for each in kept for at in each]


def for_header(
    tool: Tool, words: Sequence[bytes], header: bytes, language: str
) -> list[bytes] | None:
    """Return the words that check a header with the options of a source; they write nothing.

    None for languages without headers.
    """
    if language not in HEADERS:
        return None
    own = {at for at, _ in sources(tool, words)}
    kept = [
        words[at]
        for places, argument in tool.options.located(words)
        if own.isdisjoint(places) and not _writes(argument)
        for at in places
    ]
    return [*kept, b"-fsyntax-only", b"-x", HEADERS[language], header]


def _writes(argument: Argument) -> bool:
    return argument.meaning in _WRITES or argument.flag in _DEPENDENCIES
