# SPDX-License-Identifier: Apache-2.0
"""Rows of command lines -> the patterns that match them; lines of `clang -###` -> words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from libetrace.core.errors import Error, PatternError

if TYPE_CHECKING:
    from libetrace.image.file import Image
    from libetrace.select.patterns import PatternSet

#: of a glob, as the longest path (PATH_MAX)
PATTERN_BYTES_MAX = 4096
#: of a glob's brackets that nothing closes: each is read to the end; glob.h has the same number
OPEN_BRACKETS_MAX = 16
QUOTED = r'(?s)"((?:[^"\\]|\\.)*)"'
ESCAPE = r"(?s)\\(.)"


def shown(pattern: bytes) -> str:
    """Return the beginning of a pattern for a message."""
    text = pattern[:24].decode(errors="replace")
    return repr(f"{text}..." if len(pattern) > 24 else text)


def check_length(pattern: bytes) -> None:
    """Refuse a glob longer than any path. PatternError."""
    if len(pattern) > PATTERN_BYTES_MAX:
        raise PatternError(
            f"the pattern {shown(pattern)} has {len(pattern):,} bytes",
            f"a pattern may have {PATTERN_BYTES_MAX:,}",
        )


def check_glob(pattern: bytes) -> None:
    """Refuse what Python's fnmatch, too, would take long to read. PatternError."""
    check_length(pattern)
    if pattern.count(b"[", pattern.rfind(b"]") + 1) > OPEN_BRACKETS_MAX:
        raise PatternError(
            f"the pattern {shown(pattern)} has more than {OPEN_BRACKETS_MAX} `[` "
            "that nothing closes",
            "write [[] for the character itself",
        )


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
