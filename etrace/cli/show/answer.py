# SPDX-License-Identifier: Apache-2.0
"""The answer of a query: entries of one kind, and how that kind is shown and passed on.

A shape turns one entry into a line, a line of details, a JSON value, and what the next module of a
pipeline takes. Entries are rendered only when they are shown: an answer of a million rows of which
a page of ten is asked for costs ten. Shapes of the usual kinds are in etrace/cli/show/shapes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Style(NamedTuple):
    """How the user wants entries to be shown."""

    root: bytes = b""  #: paths below this directory are shown relative to it; empty: absolute
    original: bool = False  #: paths as the programs gave them
    raw: bool = False  #: commands joined by blanks, without quotes of a shell
    one_line: bool = False  #: for a terminal: every name takes one line


class Shape(Protocol):
    """One kind of entries."""

    @property
    def styles(self) -> tuple[str, ...]:
        """Options that change what is shown of an entry: relative, original_path, raw_command."""
        ...

    @property
    def feeds(self) -> tuple[str, ...]:
        """Options of the next query that take an entry, best first: path, binary, pid."""
        ...

    def plain(self, item: Any, style: Style) -> bytes:
        """Return the line of an entry, without its end."""
        ...

    def details(self, item: Any, style: Style) -> bytes:
        """Return the line of an entry with all its fields."""
        ...

    def entry(self, item: Any, style: Style) -> Any:
        """Return the value of an entry in `--json`; bytes by surrogateescape."""
        ...

    def record(self, item: Any, style: Style) -> Mapping[str, Any]:
        """Return the value with `--details`, whose keys `--fmt` and `--sorting-key` take."""
        ...

    def feed(self, item: Any, option: str) -> bytes:
        """Return the value of the next query's option `--OPTION` for this entry."""
        ...


class Answer(NamedTuple):
    """Entries in a stable order; with `single` there is one, shown in JSON without an envelope."""

    shape: Shape
    items: Sequence[Any] = ()
    single: bool = False
