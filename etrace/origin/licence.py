# SPDX-License-Identifier: Apache-2.0
"""The first lines of a file -> its SPDX-License-Identifier, when it has a well-formed one.

Grammar: SPDX specification, annex "SPDX license expressions".
"""

from __future__ import annotations

import re

from etrace.compilers.regular_file import read_head

N_BYTES = 2048
# REUSE-IgnoreStart
_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*([^\r\n]*)")
# REUSE-IgnoreEnd
#: what follows an expression on its line: the end of a comment or of a string
_END = re.compile(r"\s*(?:\*/|-->|\*\)|\"|'|#\}|%>|\|).*$")
_TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9][\w.:+-]*)")


def tag_of(path: bytes) -> str:
    """Return the expression of a file, empty without one."""
    return tag_in(read_head(path, N_BYTES))


def tag_in(head: bytes) -> str:
    """Return the expression in the first bytes of a file, empty without one."""
    match = _TAG.search(head)
    if match is None:
        return ""
    said = _END.sub("", match[1].decode("ascii", "replace")).strip()
    return said if is_expression(said) else ""


def is_expression(text: str) -> bool:
    """Return whether a text has the form of an SPDX licence expression."""
    words, at = list[str](), 0
    while match := _TOKEN.match(text, at):
        words.append(match[1])
        at = match.end()
    if at != len(text) or not words or len(words) > 500:
        return False
    depth, wants_name, after_with, is_single = 0, True, False, False
    for word in words:
        is_operator = word.upper() in ("AND", "OR", "WITH")
        if word == "(":
            if not wants_name or after_with:
                return False
            depth += 1
        elif word == ")":
            depth -= 1
            if wants_name or depth < 0:
                return False
            is_single = False
        elif is_operator == wants_name or (word.upper() == "WITH" and not is_single):
            return False
        else:
            is_single = not is_operator and not after_with  # `A WITH B` takes no other exception
            wants_name, after_with = is_operator, word.upper() == "WITH"
    return not wants_name and depth == 0
