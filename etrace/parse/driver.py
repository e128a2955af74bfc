# SPDX-License-Identifier: Apache-2.0
"""Runs the native parser on a trace and says what came of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.core.rights import followed
from libetrace.trace import parser as native

from etrace.errors import EtraceError
from etrace.parse import responses
from etrace.parse.inputs import STDIN, open_trace
from etrace.parse.outputs import pending_files, side_file
from etrace.parse.report import ParseReport, Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from libetrace.trace.source import Source

MAX_JOBS = 64
KINDS = {kind.native_name: kind for kind in ProblemKind}


class NothingUsableError(EtraceError):
    """The trace holds no event; `report` says what its lines were taken for."""

    def __init__(self, message: str, hint: str, report: ParseReport) -> None:
        super().__init__(message, hint)
        self.report = report


def check_distinct(names: Sequence[str], target: Path) -> None:
    """Refuse to replace a trace by what is made of it."""
    for name in names:
        if name != "-" and target.exists() and target.samefile(name):
            raise EtraceError(
                f"{target} is an input and the output", "name another file to write: X.json"
            )


def count_jobs(jobs: int) -> int:
    """Return the number of threads: as asked, or one for each CPU that this process may use."""
    return min(jobs or len(os.sched_getaffinity(0)), MAX_JOBS)


def name_problems(counts: native.Counts, source: Source, names: Sequence[str]) -> list[Problem]:
    """Put words and places to the problems that the native parser counted."""
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
        size_bytes=source.size,
        lines=counts["lines"],
        events=dict(zip(native.EVENT_TAGS, counts["events"], strict=True)),
        processes=counts["processes"],
        executions=counts["executions"],
        entries=counts["entries"],
        files=counts["files"],
        paths=counts["paths"],
        pipe_links=counts["pipe_links"],
        seconds=seconds,
        problems=tuple(name_problems(counts, source, names)),
    )


def parse_trace(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    jobs: int = 0,
    split: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ParseReport:
    """Parse a trace into `output` (X.json) and X.env.json and X.mounts.json beside it.

    X.rsp.json holds what response files held, when that was captured.

    `inputs` are .nfsdb files, directories of parts or `-`; several are merged by time. `jobs` is
    the number of threads (0: one for each CPU). `split` breaks entries whose files have paths of
    more bytes than that into several (0: never). `progress(done, total)` is called with bytes now
    and then.

    The files appear whole or not at all. Raises EtraceError when an input cannot be read or an
    output not be written, NothingUsableError when the trace holds no event.
    """
    started = time.monotonic()
    target = Path(output)
    source, names = open_trace(inputs)
    check_distinct(names, target)
    try:
        target = followed(target)
        with pending_files(target, [Path(name) for name in names if name != STDIN]) as fds:
            counts = native.parse(
                source, fds, jobs=count_jobs(jobs), split=split, progress=progress
            )
            report = make_report(counts, source, names, time.monotonic() - started)
            if not report.processes and not report.events["UPID"]:
                raise NothingUsableError(
                    f"{', '.join(names)}: no events", "is it a trace (.nfsdb)?", report
                )
        responses.write(names, side_file(target, "rsp"))
    except OSError as error:
        raise EtraceError(
            f"cannot write {target}: {error.strerror}", "make room, or choose another place"
        ) from error
    return report
