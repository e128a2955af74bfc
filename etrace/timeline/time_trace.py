# SPDX-License-Identifier: Apache-2.0
"""What clang wrote by -ftime-trace -> slices inside the execution that wrote it.

The trace of the build shows which execution wrote which file. Times in these files are microseconds
since the compiler began. The file may have been replaced since, by anybody: what does not fit is
left out. Format: clang's -ftime-trace (llvm/lib/Support/TimeProfiler.cpp), which is Chrome's: whole
events "X", since LLVM 20 also pairs of "b" and "e"; "Total ..." are sums on threads of their own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from libetrace.image.file import Image

from etrace.compilers.regular_file import read_regular
from etrace.spec.database import ACCESS
from etrace.timeline.slices import Slice

FLAG = b"-ftime-trace"
MAX_BYTES = 256 << 20
MAX_US = 1 << 52


class TimeTraces:
    """The time traces that the executions of one image wrote."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._written = self._find()

    def _find(self) -> dict[int, list[bytes]]:
        """Return execution -> JSON files that it wrote, of those that were asked for them."""
        asked = set(self._asked())
        found: defaultdict[int, list[bytes]] = defaultdict(list)
        if not asked:
            return found
        opens = self._image["opens"]
        columns = (opens["execution"], opens["path"], opens["mode"])
        for row, path, mode in zip(*columns, strict=True):
            if mode & ACCESS and row in asked:
                text = self._image.path_string(path)
                if text.endswith(b".json") and text not in found[row]:
                    found[row].append(text)
        return found

    def _asked(self) -> Iterator[int]:
        image = self._image
        strings, executions = image["arguments"]["string"], image["executions"]
        flags = {row for row in set(strings) if image.string(row).startswith(FLAG)}
        start = executions["argv.start"].tolist()
        for row in range(executions.n_rows if flags else 0):
            if not flags.isdisjoint(strings[start[row] : start[row + 1]]):
                yield row

    def __call__(self, row: int) -> Iterator[Slice]:
        """Yield the slices of an execution, by start, an outer one first."""
        for path in self._written.get(row, ()):
            begin: int = self._image["executions"]["start_ns"][row]
            events = sorted(_events(path), key=lambda e: (e[0], -e[1]))
            for start_us, length_us, name, detail in events:
                start_ns = begin + round(start_us * 1000)
                end_ns = start_ns + round(length_us * 1000)
                details = (("detail", detail),) if detail else ()
                yield Slice(0, start_ns, end_ns, name, "clang", details)


def _read(path: bytes) -> list[Any]:
    """Return the events of a file, none of one that is not a time trace any more."""
    text = read_regular(path, MAX_BYTES)
    try:
        value = json.loads(text or b"")
    except (ValueError, RecursionError):
        return []
    events = value.get("traceEvents") if isinstance(value, dict) else None
    return events if isinstance(events, list) else []


def _events(path: bytes) -> Iterator[tuple[float, float, str, str]]:
    """Yield (start, length in us, name, detail)."""
    begun: dict[tuple[str, str], tuple[float, str]] = {}
    for event in _read(path):
        if not isinstance(event, dict):
            continue
        name, time_us, length_us = event.get("name"), _time(event, "ts"), _time(event, "dur")
        if not isinstance(name, str) or name.startswith("Total ") or time_us is None:
            continue
        phase, args = event.get("ph"), event.get("args")
        detail = str(args.get("detail", "")) if isinstance(args, dict) else ""
        key = (name, str(event.get("id")))
        if phase == "X" and length_us is not None:
            yield time_us, length_us, name, detail
        elif phase == "b":
            begun[key] = (time_us, detail)
        elif phase == "e" and key in begun:
            start_us, detail = begun.pop(key)
            yield start_us, max(time_us - start_us, 0), name, detail


def _time(event: dict[str, Any], key: str) -> float | None:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= MAX_US else None
