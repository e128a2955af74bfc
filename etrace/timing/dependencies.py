# SPDX-License-Identifier: Apache-2.0
"""A database -> which job had to end before another could begin, because both used one file.

A job is a child of a scheduler such as make; a leaf job has no scheduler below it. Of two uses of
one file, of which at least one is a write, the earlier comes first: a read after a write, a write
after a write, a write after a read. Jobs that overlapped in the traced build did not wait for each
other. Devices and directories make no dependency (docs/dependencies.md).
"""

from __future__ import annotations

import heapq
import stat
from collections.abc import Callable, Iterator
from itertools import compress
from typing import NamedTuple

from libetrace.depend.path_opens import WRITES, PathOpens
from libetrace.image.file import Image

from etrace.spec.database import ACCESS, NONE, file_type
from etrace.timing.processes import Processes


class Dependency(NamedTuple):
    """Process `after` waited for the end of process `before` because of `path`, a row of `paths`.

    Both are children of one scheduler, or leaf jobs of any. `is_read` when `after` read what
    `before` wrote.
    """

    before: int
    after: int
    path: int
    is_read: bool


#: PathOpens.uses() -> whether a path was written
IS_WRITTEN = bytes(bool(each & WRITES) for each in range(256))


class _File:
    """Who used a file last, in the order of time."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer, self.readers = NONE, set[int]()

    def use(self, process: int, *, is_write: bool) -> None:
        """Take the next use."""
        if is_write:
            self.writer, self.readers = process, set()
        else:
            self.readers.add(process)


#: two processes -> the jobs that they belong to, NONE for none
JobsOf = Callable[[int, int], tuple[int, int]]


def find_dependencies(image: Image, processes: Processes, jobs_of: JobsOf) -> list[Dependency]:
    """Return the dependencies between jobs, each once, by the time of the later use.

    What is a job `jobs_of` tells, as Processes.jobs_of_common() and leaf_jobs() do.
    """
    found: dict[tuple[int, int], Dependency] = {}
    files: dict[int, _File] = {}
    for path, process, is_write in _uses(image, processes):
        file = files.setdefault(path, _File())
        earlier = {file.writer} | (file.readers if is_write else set())
        for other in earlier - {NONE, process}:
            before, after = jobs_of(other, process)
            if before == after or NONE in (before, after):
                continue
            if processes[before].end_ns <= processes[after].start_ns:
                _keep(found, Dependency(before, after, path, not is_write))
        file.use(process, is_write=is_write)
    return list(found.values())


def _keep(found: dict[tuple[int, int], Dependency], one: Dependency) -> None:
    """Keep one dependency between two jobs, rather one by a read."""
    kept = found.get(one[:2])
    if kept is None or (one.is_read and not kept.is_read):
        found[one[:2]] = one


def _uses(image: Image, processes: Processes) -> Iterator[tuple[int, int, bool]]:
    """Yield (path, process, whether it writes) of files that the build wrote, by time.

    Who executes a program reads it.
    """
    opens, n_paths = image["opens"], image["paths"].n_rows
    paths, modes = opens["path"], opens["mode"]
    writes = PathOpens(image).uses().translate(IS_WRITTEN)
    written = bytearray(n_paths)
    for path in compress(range(n_paths), writes):
        written[path] = not image.path_string(path).startswith(b"/dev/")
    times, executions = opens["open_ns"], opens["execution"]
    rows = list(compress(range(len(paths)), map(written.__getitem__, paths)))
    rows.sort(key=times.__getitem__)
    opened = (
        (times[row], paths[row], processes.of_row[executions[row]], bool(modes[row] & ACCESS))
        for row in rows
        if not stat.S_ISDIR(file_type(modes[row]))
    )
    began = min(  # time stamp of the begin of the trace, from which executions count
        (t - processes.row_start(e) for t, e in zip(times, executions, strict=True) if t > 0),
        default=0,
    )
    programs = sorted(
        (began + processes.row_start(row), path, processes.of_row[row], False)
        for row, path in enumerate(image["executions"]["binary"])
        if path != NONE and written[path]
    )
    for _, path, process, is_write in heapq.merge(opened, programs, key=lambda use: use[0]):
        yield path, process, is_write
