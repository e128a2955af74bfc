# SPDX-License-Identifier: Apache-2.0
"""Bytes of a build -> text that can be shown and written as UTF-8; values -> cells of CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, Protocol

#: a spreadsheet takes a cell that begins so for a formula (OWASP, "CSV Injection"), wide forms too
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def text_of(raw: bytes) -> str:
    r"""Return text; bytes that are not UTF-8 as \xNN."""
    return raw.decode("utf-8", "backslashreplace")


def csv_cell(value: Any) -> Any:
    """Return the value of a cell; a text that would be a formula begins with an apostrophe.

    Numbers stay numbers, as texts too: -5 computes nothing.
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


class Stream(Protocol):
    """Where CSV goes."""

    def write(self, text: str, /) -> Any:
        """Take the text of a line."""
        ...


class CsvWriter:
    """Writes CSV without formulas, lines ended by a newline."""

    def __init__(self, stream: Stream) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")

    def write(self, row: Iterable[Any]) -> None:
        """Write a row."""
        self._writer.writerow(map(csv_cell, row))
