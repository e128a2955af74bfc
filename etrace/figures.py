# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: `1 process`, `1,234 lines without a prefix`, `1.5 MB`, `0.250 s`."""

from __future__ import annotations

import re

NS_PER_SECOND = 1_000_000_000
STEP = 1000
UNITS = ("B", "kB", "MB", "GB", "TB")
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


def size(n_bytes: int) -> str:
    """Return a size in powers of 1000: `12 B`, `1.5 MB`."""
    value, unit = float(n_bytes), 0
    while value >= STEP and unit < len(UNITS) - 1:
        value, unit = value / STEP, unit + 1
    return f"{value:.1f} {UNITS[unit]}" if unit else f"{n_bytes} B"


def seconds(n_ns: int) -> str:
    """Return a duration in seconds with three digits after the point."""
    return f"{n_ns / NS_PER_SECOND:.3f} s"
