# SPDX-License-Identifier: Apache-2.0
"""Numbers with nouns: `1 process`, `1,234 lines without a prefix`."""

from __future__ import annotations

import re

VOWELS = "aeiou"
HISSES = ("s", "ch", "sh", "x")
_FORMS = r"\{([^{}|]*)\|?([^{}]*)\}"


def plural(noun: str) -> str:
    """Return the plural of an English noun: processes, libraries, keys, matches."""
    if noun.endswith("y") and noun[-2:-1] not in VOWELS:
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(HISSES) else "s")


def count(n: int, noun: str) -> str:
    """Return `1 process`, `2 processes`, `1,234 opens`."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def agree(n: int, text: str) -> str:
    """Return a number with a text that agrees with it.

    In the text `{s}` is a plural ending, and `{is|are}` has a singular and a plural word.
    """

    def form(found: re.Match[str]) -> str:
        one, many = found.groups() if "|" in found[0] else ("", found[1])
        return one if n == 1 else many

    return f"{n:,} {re.sub(_FORMS, form, text)}"
