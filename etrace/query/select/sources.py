# SPDX-License-Identifier: Apache-2.0
"""Which compiled sources a database output for other tools is about, and how many it leaves out.

Editors and analysers open the sources that a database names. What a configure script compiled and
removed, or a compiler read from a pipe, is not there for them.
"""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Callable, Sequence

from libetrace.image.file import Image

from etrace.query.rows.temporary import Temporaries
from etrace.query.select.file_names import find_path
from etrace.query.select.filters import Filter
from etrace.query.select.selection import passing_paths

TEMPORARY = "temporary"
STDIN = "read from standard input"
GONE = "not there now"
ELSEWHERE = "elsewhere"
FILTERED = "filtered"
RULED = "ruled out"
_STDIN = (b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0")


class SourceSelection:
    """Takes sources for which every test holds, each asked once.

    `n_taken` counts them, `left_out` the others by reason.
    """

    def __init__(self, *tests: Callable[[bytes], str]) -> None:
        """Each test returns why it leaves a source out, "" when it does not."""
        self._tests = tests
        self._reasons: dict[bytes, str] = {}
        self.left_out: Counter[str] = Counter()
        self.n_taken = 0

    def takes(self, source: bytes) -> bool:
        """Return whether a source is taken, and count it when it is not."""
        reason = self._reason(source)
        if reason:
            self.left_out[reason] += 1
        else:
            self.n_taken += 1
        return not reason

    def passes(self, file: bytes) -> bool:
        """Return whether a file would be taken, and count nothing."""
        return not self._reason(file)

    def _reason(self, file: bytes) -> str:
        if file not in self._reasons:
            self._reasons[file] = next(filter(None, (test(file) for test in self._tests)), "")
        return self._reasons[file]


def usual(image: Image) -> Callable[[bytes], str]:
    """Return the test that leaves out what a build compiled and removed, and standard input."""
    temporaries = Temporaries(image)

    def why(source: bytes) -> str:
        if source in _STDIN or source.startswith((b"pipe:", b"/dev/pts/")):
            return STDIN
        row = image.find_path(source)
        return TEMPORARY if row >= 0 and temporaries.is_temporary(row) else ""

    return why


def existing(source: bytes) -> str:
    """Leave out what is not a file now."""
    return "" if os.path.isfile(source) else GONE  # noqa: PTH113  bytes


def below(directories: Sequence[bytes]) -> Callable[[bytes], str]:
    """Return the test that leaves out what is in none of some directories."""
    wanted = tuple(os.path.abspath(each).rstrip(b"/") + b"/" for each in directories)  # noqa: PTH100
    return lambda source: "" if source.startswith(wanted) else ELSEWHERE


def ruled(rules: Sequence[tuple[bool, bytes]]) -> Callable[[bytes], str]:
    """Return the test of rules, each whether it includes, and a directory, file or glob.

    The last rule that matches decides. What none matches is left out when the first one includes.
    """
    matchers = [(is_kept, _matcher(pattern)) for is_kept, pattern in rules]

    def why(source: bytes) -> str:
        decided = (is_kept for is_kept, matches in reversed(matchers) if matches(source))
        return "" if next(decided, not rules[0][0]) else RULED

    return why


def _matcher(pattern: bytes) -> Callable[[bytes], bool]:
    if not set(b"*?[").isdisjoint(pattern):
        whole = pattern if pattern.startswith((b"/", b"*")) else b"*/" + pattern
        return lambda source: fnmatch.fnmatchcase(source, whole)
    path = os.path.abspath(pattern).rstrip(b"/")  # noqa: PTH100  bytes
    return lambda source: source == path or source.startswith(path + b"/")


def held(image: Image, filters: Sequence[Filter]) -> Callable[[bytes], str]:
    """Return the test that leaves out sources for no open of which all filters hold."""

    def why(source: bytes) -> str:
        row = find_path(image, source)
        return "" if row >= 0 and passing_paths(image, filters, [row]) else FILTERED

    return why
