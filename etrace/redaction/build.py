# SPDX-License-Identifier: Apache-2.0
"""An image -> its command lines and texts without secrets, in whatever is written from it.

Words are redacted before anything is derived from them: names of steps are made of `words`. Values
that rules find anywhere in the build (a command line, its environment) are hidden everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from libetrace.image.file import Image

from etrace.nfsdb.environment import all_variables
from etrace.redaction.commands import secret_values, shown_arguments, shown_variables
from etrace.redaction.names import is_secret, keeps
from etrace.redaction.texts import HIDDEN, merged, parts_of, spans_of, without_secrets

#: shorter values are words of the language
LEAST_SECRET = 6
#: values that name something (`-DAUTH_TYPE=openssl`): hidden where they are, and nowhere else
PLAIN = re.compile(
    r"[A-Za-z]{1,15}|\d{1,6}|/\S*|\$.*"
    r"|[\w./+-]*\.(?:[achosSd]|cc|cpp|cxx|hpp|so|py|sh|mk|in|am|ac|txt|md|json|xml|html|js|ts|rs|go|java)",
    re.DOTALL,
)
#: prefixes of each other that any_of puts into each other
MAX_NESTED = 40


class Redaction:
    """What of one build may be written."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._texts: dict[str, str] = {}
        self._words: dict[bytes, list[bytes]] = {}

    @cached_property
    def values(self) -> frozenset[str]:
        """The secrets that the environment and the command lines show."""
        return frozenset(
            value for value in _values(self._image)
            if len(value) >= LEAST_SECRET and not PLAIN.fullmatch(value) and HIDDEN not in value
        )  # fmt: skip

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return any_of(self.values)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        found = self._texts.get(text)
        if found is None:
            found = text if self._pattern is None else self._pattern.sub(HIDDEN, text)
            found = self._texts[text] = without_secrets(found)
        return found

    def raw(self, text: bytes) -> bytes:
        """Return bytes without secrets."""
        shown = os.fsdecode(text)
        found = self.text(shown)
        return text if found == shown else os.fsencode(found)

    def words(self, argv: Sequence[bytes]) -> list[bytes]:
        """Return the words of a command line without secrets."""
        words = list(map(os.fsdecode, argv))
        shown = [self.text(word) for word in shown_arguments(words)]
        return list(argv) if shown == words else list(map(os.fsencode, shown))

    def variables(self, texts: Iterable[str], globs: Iterable[str]) -> list[tuple[str, str]]:
        """Return (name, value) of the variables that were asked for, sorted."""
        wanted = tuple(globs)
        return [
            (name, value if name in wanted and is_secret(name) else self.text(value))
            for name, value in shown_variables(texts, wanted)
        ]

    def within(self, value: Any) -> Any:
        """Return what JSON can hold without secrets in its texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.within(each) for key, each in value.items()}
        return [self.within(each) for each in value] if isinstance(value, list | tuple) else value


def _values(image: Image) -> Iterator[str]:
    for variable in all_variables(image):
        name, _, value = os.fsdecode(variable).partition("=")
        if keeps(name, value):
            yield from parts_of(value)
        else:
            yield from (each for a, b in merged(spans_of(value)) for each in parts_of(value[a:b]))
    executions, arguments = image["executions"], image["arguments"]["string"]
    strings: dict[int, str] = {}
    seen: set[bytes] = set()
    for row in range(executions.n_rows):
        span = executions.span("argv.start", row)
        own = arguments[span.start : span.stop]
        if (key := own.tobytes()) not in seen:
            seen.add(key)
            for each in own:
                if each not in strings:
                    strings[each] = os.fsdecode(image.string(each))
            yield from secret_values([strings[each] for each in own])


def any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds any of many texts, the longest first; None for none.

    Their begins are shared, so that its time hardly depends on their number.
    """
    known = sorted(set(values))
    return re.compile(_shared(known, 0, MAX_NESTED)) if known else None


def _shared(values: Sequence[str], at: int, depth: int) -> str:
    """Return the pattern of sorted texts that have their first `at` characters in common."""
    if len(values) == 1:
        return re.escape(values[0][at:])
    if not depth:
        return f"(?:{'|'.join(re.escape(value[at:]) for value in reversed(values))})"
    pairs = enumerate(zip(values[0], values[-1], strict=False))
    end = next((i for i, (a, b) in pairs if a != b), len(values[0]))
    begin, first = re.escape(values[0][at:end]), len(values[0]) == end
    groups: dict[str, list[str]] = {}
    for value in values[first:]:
        groups.setdefault(value[end], []).append(value)
    rest = "|".join(_shared(group, end, depth - 1) for group in groups.values())
    return f"{begin}(?:{rest})" + ("?" if first else "")
