# SPDX-License-Identifier: Apache-2.0
"""Tests of paths in databases of builds on Windows: names in any case, both slashes.

Paths and what they are compared with are folded to lower case and `/`; a backslash of a glob is
thus a separator, which no name can have. Case is that of Python's lower(). Such databases have the
attribute `path_style` (docs/image.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from libetrace.select.patterns import PatternSet

if TYPE_CHECKING:
    from libetrace.image.file import Image

Test = Callable[[str], bool]


def has_windows_paths(image: Image) -> bool:
    """Return whether the paths of an image are those of Windows."""
    return image.attributes.get("path_style") == "windows"


def folded(path: str) -> str:
    """Return a path in the form in which equal ones are equal."""
    return path.lower().replace("\\", "/")


def has_part(value: str) -> Test:
    """Test for a part."""
    part = folded(value)
    return lambda path: part in folded(path)


def is_under(value: str) -> Test:
    """Test for a folder and all below it."""
    folder = folded(value).rstrip("/")
    return lambda path: (folded(path) + "/").startswith(folder + "/")


def is_one_of(values: Sequence[str]) -> Test:
    """Test for whole paths."""
    wanted = set(map(folded, values))
    return lambda path: folded(path) in wanted


def matches_any(globs: Sequence[str]) -> Test:
    """Test for globs of whole paths."""
    known = PatternSet([_bytes(folded(glob)) for glob in globs])
    return lambda path: any(known.match(_bytes(folded(path))))


def matches_expression(value: str) -> Test:
    """Test for a regular expression at the start; its slashes are what it says."""
    match = re.compile(value, re.DOTALL | re.IGNORECASE).match
    return lambda path: match(path) is not None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
