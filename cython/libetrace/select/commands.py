# SPDX-License-Identifier: Apache-2.0
"""Rows of command lines -> the patterns that match them; lines of `clang -###` -> words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from libetrace.core.errors import Error

if TYPE_CHECKING:
    from libetrace.image.file import Image
    from libetrace.select.patterns import PatternSet

QUOTED = r'(?s)"((?:[^"\\]|\\.)*)"'
ESCAPE = r"(?s)\\(.)"


def match_rows(image: Image, known: PatternSet, start: Any, rows: Any) -> bytearray:
    """Return the bits of all patterns for rows of arguments; `libetrace.error` for a damaged image.

    Row i is the strings rows[start[i]:start[i + 1]] joined by blanks.
    """
    strings = image["strings"]
    try:
        return known.match_rows(strings["start"], strings["bytes"], start, rows)
    except (ValueError, IndexError) as error:
        raise Error(f"{image.path}: damaged: {error}", "make it again: cas cache") from error


def parse_compiler_triple_hash(command: str) -> list[str]:
    """Return the words of a line that `clang -###` prints: quoted, with escapes by backslash."""
    return [re.sub(ESCAPE, r"\1", word) for word in re.findall(QUOTED, command)]
