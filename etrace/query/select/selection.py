# SPDX-License-Identifier: Apache-2.0
"""A selection (files, programs, processes, filters) -> rows of opens and executions.

Values of one kind are alternatives, and all kinds must hold: `path=(a, b), pids=(1,)` selects the
opens of a or b by process 1. An empty selection selects everything.
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.errors import EtraceError, NothingFoundError
from etrace.query.select.conditions import passing_executions, passing_opens
from etrace.query.select.file_names import find_files
from etrace.query.select.filters import Filter

_PROCESS = re.compile(rb"(\d{1,20})(?::(\d{1,20}))?")
_SHOWN_BYTES = 40  # of what is not a process

Rows = Sequence[int]


class Selection(NamedTuple):
    """What a query selects; None selects everything. `pids` are `upid` or `upid:index`.

    With `is_exact` an unknown path or process is an error, otherwise it selects nothing.
    """

    paths: Sequence[bytes] | None = None
    binaries: Sequence[bytes] | None = None
    pids: Sequence[bytes] | None = None
    filters: Sequence[Filter] = ()
    command_filters: Sequence[Filter] = ()
    is_exact: bool = True

    @property
    def chooses_executions(self) -> bool:
        """Whether programs, processes or commands are selection."""
        return self.binaries is not None or self.pids is not None or bool(self.command_filters)

    @property
    def is_everything(self) -> bool:
        """Whether nothing is selection."""
        return self.paths is None and not self.filters and not self.chooses_executions

    def of_executions(self) -> Selection:
        """Return the selection of executions, without that of files."""
        return self._replace(paths=None, filters=())

    def of_files(self) -> Selection:
        """Return the selection of files only."""
        return self._replace(binaries=None, pids=None, command_filters=())


EVERYTHING = Selection()


def passing_paths(image: Image, filters: Sequence[Filter], paths: Sequence[int]) -> list[int]:
    """Return the rows of `paths` with an open that matches all filters, in their order."""
    if not filters:
        return list(paths)
    opens = image["path_opens"]["open"]
    rows = sorted(opens[i] for path in paths for i in image["paths"].span("opens.start", path))
    of = image["opens"]["path"]
    held = {of[row] for row in passing_opens(image, filters, rows)}
    return [path for path in paths if path in held]


def pid_rows(image: Image, pids: Iterable[bytes], *, is_exact: bool = True) -> list[int]:
    """Return the rows of `executions` of `upid` or `upid:index`, ascending."""
    executions = image["executions"]
    upid, index = executions["upid"], executions["index"]
    rows: set[int] = set()
    for text in pids:
        found_process = _PROCESS.fullmatch(text)
        if found_process is None:
            raise EtraceError(
                f"{os.fsdecode(text[:_SHOWN_BYTES])!r} is not a process",
                "write PID or PID:INDEX, as cas execs does",
            )
        process, which = found_process[1], found_process[2]
        start = bisect.bisect_left(upid, int(process))
        found = range(start, bisect.bisect_right(upid, int(process)))
        named = [row for row in found if not which or index[row] == int(which)]
        if not named and is_exact:
            raise NothingFoundError(f"no execution {os.fsdecode(text)}", "cas execs lists them")
        rows.update(named)
    return sorted(rows)


def _binary_rows(image: Image, selection: Selection) -> set[int]:
    assert selection.binaries is not None
    programs = set(find_files(image, selection.binaries, is_exact=selection.is_exact))
    return {row for row, path in enumerate(image["executions"]["binary"]) if path in programs}


def _opens_of_paths(image: Image, selection: Selection) -> list[int]:
    assert selection.paths is not None
    paths, opens = image["paths"], image["path_opens"]["open"]
    rows = find_files(image, selection.paths, is_exact=selection.is_exact, follows=True)
    return sorted(opens[i] for row in rows for i in paths.span("opens.start", row))


def _running(image: Image, selection: Selection) -> Rows:
    """Return the executions that programs, processes and command filters select."""
    rows: Rows = range(image["executions"].n_rows)
    if selection.pids is not None:
        rows = pid_rows(image, selection.pids, is_exact=selection.is_exact)
    if selection.binaries is not None:
        wanted = _binary_rows(image, selection)
        rows = [row for row in rows if row in wanted]
    if selection.command_filters:
        return passing_executions(image, selection.command_filters, rows)
    return rows


def selected_opens(image: Image, selection: Selection = EVERYTHING) -> Rows:
    """Return rows of `opens`, ascending."""
    executions = image["executions"]
    rows: Rows
    if selection.paths is not None:
        rows = _opens_of_paths(image, selection)
        if selection.chooses_executions:
            running, owner = set(_running(image, selection)), image["opens"]["execution"]
            rows = [row for row in rows if owner[row] in running]
    elif selection.chooses_executions:
        rows = [
            i for row in _running(image, selection) for i in executions.span("opens.start", row)
        ]
    else:
        rows = range(image["opens"].n_rows)
    return passing_opens(image, selection.filters, rows) if selection.filters else rows


def selected_executions(image: Image, selection: Selection = EVERYTHING) -> list[int]:
    """Return rows of `executions`, ascending; with files or filters only those that opened one."""
    rows = _running(image, selection)
    if selection.paths is None and not selection.filters:
        return list(rows)
    owner = image["opens"]["execution"]
    opened = selected_opens(image, selection.of_files())
    opening = {owner[row] for row in opened}
    return [row for row in rows if row in opening]


def filtered_paths(image: Image, filters: Sequence[Filter]) -> set[int]:
    """Return the rows of `paths` with an open that matches all filters."""
    path = image["opens"]["path"]
    return {path[row] for row in selected_opens(image, Selection(filters=filters))}


def opened_paths(image: Image, rows: Iterable[int], *, original: bool = False) -> list[bytes]:
    """Return the distinct paths of opens, sorted as bytes."""
    if original:  # strings are sorted as bytes, and so are paths
        strings = {image["opens"]["original"][row] for row in rows}
        return [image.string(row) for row in sorted(strings)]
    path = image["opens"]["path"]
    return [image.path_string(row) for row in sorted({path[row] for row in rows})]
