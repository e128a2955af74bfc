# SPDX-License-Identifier: Apache-2.0
r"""Database image -> `.nfsdb.json` with the keys of the seed, as etrace_parser writes them.

One execution a line, UTF-8; bytes that are not UTF-8 as `\udcXX` (docs/nfsdb-json.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from libetrace.image import Image

from etrace.spec.database import NONE


class Exporter:
    """Makes the entries of one image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._executions = image["executions"]
        until = image["opens"]["until_ns"]
        self._tells_last = bool(len(until)) and until[0] != NONE  # else a foreign database
        self._text = lru_cache(maxsize=1 << 16)(self._decode)

    def _decode(self, string: int) -> str:
        return os.fsdecode(self._image.string(string))

    def _key(self, row: int) -> dict[str, int]:
        if row == NONE:
            return {"p": -1, "x": 0}
        return {"p": self._executions["upid"][row], "x": self._executions["index"][row]}

    def _opens(self, row: int) -> Iterator[dict[str, Any]]:
        opens, paths = self._image["opens"], self._image["paths"]
        for i in self._executions.span("opens.start", row):
            path = paths["string"][opens["path"][i]]
            out: dict[str, Any] = {"p": self._text(path)}
            if opens["original"][i] != path:
                out["o"] = self._text(opens["original"][i])
            begin, end, last = opens["open_ns"][i], opens["close_ns"][i], opens["until_ns"][i]
            out |= {"b": begin, "e": end}
            if last > max(begin, end):
                out["l"] = last
            yield out | {"m": opens["mode"][i], "s": opens["size"][i]}

    def _inherited(self, row: int) -> list[dict[str, Any]]:
        table, paths = self._image["inherited"], self._image["paths"]
        return [
            {
                "d": table["descriptor"][i],
                "p": self._text(paths["string"][table["path"][i]]),
                "m": table["mode"][i],
            }
            for i in self._executions.span("inherited.start", row)
        ]

    def _binary(self, row: int) -> str:
        binary = self._executions["binary"][row]
        return "" if binary == NONE else self._text(self._image["paths"]["string"][binary])

    def entry(self, row: int) -> dict[str, Any]:
        """Return one execution."""
        e, image = self._executions, self._image
        children, cpus = image["children"], image["cpus"]
        arguments, readers = image["arguments"]["string"], image["pipe_readers"]["execution"]
        out: dict[str, Any] = self._key(row)
        out |= {
            "s": e["start_ns"][row],
            "e": e["elapsed_ns"][row],
            "b": self._binary(row),
            "w": self._text(e["cwd"][row]),
            "v": [self._text(arguments[i]) for i in e.span("argv.start", row)],
            "c": [
                {"p": children["upid"][i], "f": children["flags"][i]}
                for i in e.span("children.start", row)
            ],
            "r": self._key(e["parent"][row]),
            "i": [self._key(readers[i]) for i in e.span("readers.start", row)],
        }
        if self._tells_last:
            out["h"] = self._inherited(row)
        out |= {
            "u": [
                {"c": cpus["cpu"][i], "t": cpus["time_ns"][i]} for i in e.span("cpus.start", row)
            ],
        }
        if e["status"][row] != NONE:
            out["!"] = e["status"][row]
        out["o"] = list(self._opens(row))
        return out


def lines(image: Image) -> Iterator[bytes]:
    """Yield the lines of the JSON file."""
    exporter = Exporter(image)
    n_rows = image["executions"].n_rows
    yield b"[\n"
    for row in range(n_rows):
        text = json.dumps(exporter.entry(row), ensure_ascii=False, separators=(",", ":"))
        end = ",\n" if row + 1 < n_rows else "\n"
        yield (text + end).encode("utf-8", "backslashreplace")
    yield b"]\n"
