# SPDX-License-Identifier: Apache-2.0
"""Columns and texts -> the data block of the page: typed arrays, deflated; in a file as base64.

Layout before compression: the length of a JSON header (u32), the header, then the columns, each at
a multiple of 8 bytes from the start of the data. `web/data.js` reads it. Texts are in one column of
UTF-8 with their starts; equal texts are stored once.
"""

from __future__ import annotations

import base64
import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: array type -> name of the typed array in the page
TYPES = {"d": "Float64Array", "I": "Uint32Array", "i": "Int32Array", "h": "Int16Array",
         "B": "Uint8Array"}  # fmt: skip
ALIGNMENT = 8


def shown(text: bytes) -> str:
    """Return text without control characters, changes of direction and invalid UTF-8."""
    plain = text.decode(errors="backslashreplace")
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


class Pack:
    """Collects what the page needs; no text enters it before `redact`, no text of `meta` leaves."""

    def __init__(
        self, redact: Callable[[bytes], bytes] = bytes, within: Callable[[Any], Any] = dict
    ) -> None:
        self._redact, self._within = redact, within
        self.meta: dict[str, Any] = {}
        self._columns: dict[str, tuple[str, bytes, int]] = {}
        self._texts: dict[str, int] = {}

    def text(self, text: bytes) -> int:
        """Return the number of a text."""
        return self._texts.setdefault(shown(self._redact(text)), len(self._texts))

    def texts(self) -> list[str]:
        """Return all texts by their numbers."""
        return list(self._texts)

    def add(self, name: str, code: str, values: Iterable[Any]) -> None:
        """Add a column of an array type of TYPES."""
        column = values if isinstance(values, array) else array(code, values)
        self._columns[name] = (TYPES[code], column.tobytes(), len(column))

    def column(self, name: str) -> array[Any]:
        """Return a column."""
        kind, data, _ = self._columns[name]
        codes = {array_type: code for code, array_type in TYPES.items()}
        return array(codes[kind], data)

    def add_lists(self, name: str, lists: Iterable[Iterable[int]]) -> None:
        """Add lists of numbers: `NAME.start` and `NAME`."""
        start, flat = array("I", [0]), array("I")
        for each in lists:
            flat.extend(each)
            start.append(len(flat))
        self.add(f"{name}.start", "I", start)
        self.add(name, "I", flat)

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add a column of bytes."""
        self._columns[name] = (TYPES["B"], data, len(data))

    def encode(self) -> str:
        """Return the data block as text."""
        return base64.b64encode(self.deflated()).decode()

    def deflated(self) -> bytes:
        """Return the data block."""
        self._add_texts()
        places: dict[str, tuple[str, int, int]] = {}
        body = bytearray()
        for name, (kind, data, length) in self._columns.items():
            body += bytes(-len(body) % ALIGNMENT)
            places[name] = (kind, len(body), length)
            body += data
        return zlib.compress(_with_header(self._within(self.meta), places, bytes(body)), 6)

    def _add_texts(self) -> None:
        start, whole = array("I", [0]), bytearray()
        for text in self._texts:
            whole += text.encode()
            start.append(len(whole))
        self.add("texts.start", "I", start)
        self.add_bytes("texts", bytes(whole))


def _with_header(
    meta: Mapping[str, Any], places: Mapping[str, tuple[str, int, int]], body: bytes
) -> bytes:
    header = json.dumps({"meta": meta, "columns": places}).encode()
    header += b" " * (-(len(header) + 4) % ALIGNMENT)
    return len(header).to_bytes(4, "little") + header + body
