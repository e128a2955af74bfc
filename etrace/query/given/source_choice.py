# SPDX-License-Identifier: Apache-2.0
"""Which compiled sources a database output for other tools is about, and how many it leaves out.

Editors and analysers open the sources that they are told of. What a configure script compiled and
removed, or a compiler read from a pipe, is not there for them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from libetrace.image.file import Image

from etrace.query.classes.temporary import Temporaries
from etrace.query.given.chosen import paths_that_hold
from etrace.query.given.filters import Filter
from etrace.query.given.targets import find_path

TEMPORARY = "temporary"
STDIN = "read from standard input"
GONE = "not there now"
ELSEWHERE = "elsewhere"
FILTERED = "filtered"
_STDIN = (b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0")


class SourceChoice:
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
        """Tell whether a source is taken, and count it when it is not."""
        if source not in self._reasons:
            self._reasons[source] = next(filter(None, (test(source) for test in self._tests)), "")
        reason = self._reasons[source]
        if reason:
            self.left_out[reason] += 1
        else:
            self.n_taken += 1
        return not reason


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
    """Leave out what is no file now."""
    return "" if os.path.isfile(source) else GONE  # noqa: PTH113  bytes


def below(directories: Sequence[bytes]) -> Callable[[bytes], str]:
    """Return the test that leaves out what is in none of some directories."""
    wanted = tuple(os.path.abspath(each).rstrip(b"/") + b"/" for each in directories)  # noqa: PTH100
    return lambda source: "" if source.startswith(wanted) else ELSEWHERE


def held(image: Image, filters: Sequence[Filter]) -> Callable[[bytes], str]:
    """Return the test that leaves out sources for no open of which all filters hold."""

    def why(source: bytes) -> str:
        row = find_path(image, source)
        return "" if row >= 0 and paths_that_hold(image, filters, [row]) else FILTERED

    return why
