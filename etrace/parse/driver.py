# SPDX-License-Identifier: Apache-2.0
"""Runs the native parser on a trace and reports the result."""

from __future__ import annotations

import os
import time
from typing import IO, TYPE_CHECKING

from libetrace.core.errors import Error
from libetrace.image.file import new_tables
from libetrace.trace import parser as native

from etrace.errors import EtraceError
from etrace.parse.inputs import open_trace
from etrace.parse.report import ParseReport, Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from libetrace.image.file import NewTable
    from libetrace.trace.source import Source

MAX_JOBS = 64
#: for events and rows; the rest is written to a file
MEMORY_BYTES = 256 << 20
KINDS = {kind.native_name: kind for kind in ProblemKind}


class NothingUsableError(EtraceError):
    """The trace has no event; `report` counts how its lines were read."""

    def __init__(self, message: str, hint: str, report: ParseReport) -> None:
        super().__init__(message, hint)
        self.report = report


def count_jobs(jobs: int) -> int:
    """Return the number of threads: `jobs`, or one for each CPU that this process may use."""
    return min(jobs or len(os.sched_getaffinity(0)), MAX_JOBS)


def open_spill(source: Source, directory: Path | None) -> IO[bytes] | None:
    """Open a temporary file for data beyond MEMORY_BYTES, unless the trace is small. OSError."""
    if directory is None or 0 < source.size <= MEMORY_BYTES:
        return None
    import tempfile  # noqa: PLC0415  slow to import, seldom needed

    return tempfile.TemporaryFile(dir=directory)


def name_problems(counts: native.Counts, source: Source, names: Sequence[str]) -> list[Problem]:
    """Add texts and places to the problems that the native parser counted."""
    wanted = sorted({line for _, lines in counts["problems"] for line in lines})
    places = dict(zip(wanted, source.locate(wanted), strict=True))
    return [
        Problem(KINDS[name], count, tuple((names[places[n][0]], places[n][1]) for n in lines))
        for name, (count, lines) in zip(native.PROBLEMS, counts["problems"], strict=True)
        if count
    ]


def make_report(
    counts: native.Counts, source: Source, names: Sequence[str], seconds: float
) -> ParseReport:
    """Turn the counts of the native parser into a report."""
    return ParseReport(
        size_bytes=counts["bytes"],
        lines=counts["lines"],
        events=dict(zip(native.EVENT_TAGS, counts["events"], strict=True)),
        processes=counts["processes"],
        executions=counts["executions"],
        files=counts["files"],
        paths=counts["paths"],
        pipe_links=counts["pipe_links"],
        seconds=seconds,
        problems=tuple(name_problems(counts, source, names)),
    )


def products(counts: native.Counts) -> tuple[str, ...]:
    """Return the tables that an image may lack and the trace has."""
    seen = dict(zip(native.EVENT_TAGS, counts["events"], strict=True))
    there = {
        "usage": seen["Usage"], "written": seen["Written"], "open_uses": counts["has_uses"],
        "fork_times": seen["SchedFork"],
    }  # fmt: skip
    return tuple(name for name, is_there in there.items() if is_there)


def parse_tables(
    inputs: Sequence[str],
    *,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
    directory: Path | None = None,
) -> tuple[list[NewTable], ParseReport]:
    """Parse a trace; return the tables of its database and the counts.

    `inputs` are .nfsdb files, directories of parts or `-`; several are merged by time. `jobs` is
    the number of threads (0: one for each CPU). `progress(done, total)` is called with bytes now
    and then. Data beyond MEMORY_BYTES is in a temporary file in `directory`.
    Raises EtraceError when an input cannot be read, NothingUsableError when the trace holds no
    event, OSError.
    """
    started = time.monotonic()
    source, names = open_trace(inputs)
    file = open_spill(source, directory)
    try:
        columns, counts = native.parse(
            source, jobs=count_jobs(jobs), progress=progress, file=file, budget=MEMORY_BYTES
        )
    except Error as error:
        raise EtraceError(f"{', '.join(names)}: {error.message}", error.hint) from error
    report = make_report(counts, source, names, time.monotonic() - started)
    tables = new_tables(columns, products(counts))
    has_rows = any(table.n_rows for table in tables if table.name == "executions")
    if not has_rows and not report.events["UPID"]:
        raise NothingUsableError(
            f"{', '.join(names)}: no events", "is it a trace (.nfsdb)?", report
        )
    return tables, report
