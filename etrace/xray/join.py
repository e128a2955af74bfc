# SPDX-License-Identifier: Apache-2.0
"""Ties a log to the execution of a traced build that wrote it.

The build's trace shows which execution wrote the log file, if the file is still in its place.
Otherwise the log's process id and its time must fit one execution. A trace's upid ends in the
kernel's process id (22 bits); its times are CLOCK_MONOTONIC, as are the wall clocks of Flight Data
Recorder logs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from libetrace.image.file import Image

from etrace.spec.database import NONE
from etrace.xray.log import Log

PID_MASK = (1 << 22) - 1
NS = 10**9
ACCESS_MASK = 3


class Evidence(Enum):
    """Why a log belongs to an execution."""

    FILE = "it wrote the log file"
    PROCESS = "its process id and time fit"


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the database."""

    row: int
    pid: int
    upid: int
    index: int
    binary: str
    arguments: tuple[str, ...]
    start_ns: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Join:
    """The result for a log; `reason` says why there is no execution, or what does not fit."""

    log: str
    execution: Execution | None
    evidence: Evidence | None = None
    reason: str = ""


def _text(image: Image, string: int) -> str:
    return os.fsdecode(image.string(string))


def describe(image: Image, row: int) -> Execution:
    """Return one execution of the database."""
    table, arguments = image["executions"], image["arguments"]["string"]
    binary = table["binary"][row]
    return Execution(
        row=row,
        pid=table["upid"][row] & PID_MASK,
        upid=table["upid"][row],
        index=table["index"][row],
        binary="" if binary == NONE else os.fsdecode(image.path_string(binary)),
        arguments=tuple(_text(image, arguments[i]) for i in table.span("argv.start", row)),
        start_ns=table["start_ns"][row],
        elapsed_ns=table["elapsed_ns"][row],
    )


def _writers(image: Image, path: Path) -> list[int]:
    """Return the executions that wrote a file."""
    found = image.find_path(os.fsencode(path.resolve()))
    if found < 0:
        return []
    opens = image["opens"]
    rows = [image["path_opens"]["open"][i] for i in image["paths"].span("opens.start", found)]
    return [opens["execution"][i] for i in rows if opens["mode"][i] & ACCESS_MASK]


def _of_process(image: Image, pid: int) -> list[int]:
    upids = image["executions"]["upid"]
    return [row for row in range(len(upids)) if upids[row] & PID_MASK == pid]


def _begin_ns(image: Image) -> int | None:
    """Return the CLOCK_MONOTONIC time at which the trace began, by its opens."""
    executions, opens = image["executions"], image["opens"]
    differences = (
        opens["open_ns"][i] - executions["start_ns"][opens["execution"][i]]
        for i in range(min(opens.n_rows, 1000))
        if opens["open_ns"][i]
    )
    return min(differences, default=None)


def _wall_ns(log: Log) -> int | None:
    """Return the CLOCK_MONOTONIC time of a log's first buffer; basic logs have none."""
    times = [seconds * NS + microseconds * 1000 for seconds, microseconds, _ in log.clock_pairs]
    return min(times, default=None)


def _covers(image: Image, row: int, wall_ns: int, begin_ns: int) -> bool:
    table = image["executions"]
    start = begin_ns + table["start_ns"][row]
    return start <= wall_ns <= start + table["elapsed_ns"][row]


def _by_time(image: Image, rows: Sequence[int], log: Log) -> list[int]:
    """Return the executions that ran when the log began; all if that time is unknown."""
    wall, begin = _wall_ns(log), _begin_ns(image)
    if wall is None or begin is None:
        return list(rows)
    return [row for row in rows if _covers(image, row, wall, begin)]


def _with_program(image: Image, rows: Sequence[int]) -> list[int]:
    return [row for row in rows if image["executions"]["binary"][row] != NONE]


def _join_by_process(image: Image, log: Log, pid: int) -> Join:
    same = _with_program(image, _of_process(image, pid))
    if not same:
        return Join(log.name, None, None, f"no process {pid} in the database")
    fitting = _by_time(image, same, log)
    if not fitting:
        return Join(log.name, None, None, f"process {pid} of the build ran at another time")
    if len(fitting) > 1:
        return Join(log.name, None, None, f"{len(fitting)} executions of process {pid} fit")
    return Join(log.name, describe(image, fitting[0]), Evidence.PROCESS)


def join(image: Image, log: Log) -> Join:
    """Find the execution that wrote a log."""
    pids = sorted({thread.process for thread in log.threads if thread.process})
    writers = _with_program(image, list(dict.fromkeys(_writers(image, Path(log.name)))))
    if pids:
        own = [row for row in writers if image["executions"]["upid"][row] & PID_MASK == pids[0]]
        if writers and not own:
            seen = ", ".join(str(describe(image, row).pid) for row in writers)
            reason = f"the log says process {pids[0]}, its file was written by process {seen}"
            reason += ": was it written in another PID namespace (a container)?"
            return Join(log.name, None, None, reason)
        writers = own
    if len(writers) == 1:
        return Join(log.name, describe(image, writers[0]), Evidence.FILE)
    if not pids:
        version = "basic logs before version 3" if log.is_basic else "FDR logs before version 3"
        reason = f"{version} have no process id, and nothing in the build wrote {log.name}"
        return Join(log.name, None, None, reason)
    return _join_by_process(image, log, pids[0])


def timeline(joined: Join) -> Iterator[dict[str, object]]:
    """Yield the execution as a trace event, in microseconds since the build began."""
    execution = joined.execution
    if execution is None:
        return
    yield {
        "ph": "X", "cat": "execution",
        "name": " ".join(execution.arguments)[:200] or execution.binary,
        "pid": execution.pid, "tid": execution.pid, "ts": execution.start_ns / 1000,
        "dur": execution.elapsed_ns / 1000,
        "args": {"upid": str(execution.upid), "index": execution.index, "binary": execution.binary},
    }  # fmt: skip


def offset_ns(image: Image, log: Log) -> int | None:
    """Return the offset from a log's time (since its first record) to the time of the build."""
    wall, begin = _wall_ns(log), _begin_ns(image)
    return None if wall is None or begin is None else wall - begin
