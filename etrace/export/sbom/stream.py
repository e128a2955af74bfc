# SPDX-License-Identifier: Apache-2.0
"""JSON that is written element by element: a document of 50,000 files is never in memory whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, BinaryIO

#: bytes that are gathered before they are written
ROOM = 1 << 18
_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonStream:
    """An object at the top whose lists may be long."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pieces: list[str] = ["{"]
        self._n_chars = 0
        self._comma = "\n"

    def value(self, key: str, value: Any) -> None:
        """Write one value."""
        self._put(f"{self._comma}{_encode(key)}:{_encode(value)}")
        self._comma = ",\n"

    def values(self, key: str, values: Iterable[Any]) -> None:
        """Write a list, an element a line."""
        self.begin(key, "[")
        self.elements(values)
        self.end("]")

    def elements(self, values: Iterable[Any]) -> None:
        """Write elements of the list that was begun."""
        for value in values:
            self._put(f"{self._comma}{_encode(value)}")
            self._comma = ",\n"

    def begin(self, key: str, bracket: str) -> None:
        """Begin a list or an object below a key."""
        self._put(f"{self._comma}{_encode(key)}:{bracket}")
        self._comma = "\n"

    def end(self, bracket: str) -> None:
        """End what was begun."""
        self._put(f"\n{bracket}")
        self._comma = ",\n"

    def close(self) -> None:
        """End the object at the top."""
        self._put("\n}\n")
        self._flush()

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._n_chars += len(text)
        if self._n_chars > ROOM:
            self._flush()

    def _flush(self) -> None:
        text = "".join(self._pieces)
        if not text.isascii():
            text = _SURROGATE.sub(_shown, text)
        self._stream.write(text.encode())
        self._pieces, self._n_chars = [], 0


def _shown(found: re.Match[str]) -> str:
    r"""Return what JSON may have for half a character: the text \xNN of a byte, or \uNNNN."""
    code = ord(found[0])
    return f"\\\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\\\u{code:04x}"


def compact(**values: Any) -> dict[str, Any]:
    """Return the values that say something, by key; a key ends in `_` where Python needs that."""
    return {
        key.rstrip("_"): value for key, value in values.items() if value not in (None, "", [], {})
    }
