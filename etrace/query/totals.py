# SPDX-License-Identifier: Apache-2.0
"""A database -> the figures of a whole build: the one place that says what their words mean.

`etrace report`, `etrace summary`, `etrace critical-path` and `cas info` show these. `etrace top`,
which reads a trace that grows, counts failed commands by the same rule.
"""

from __future__ import annotations

from typing import NamedTuple

from libetrace.depend import execution_facts
from libetrace.depend.execution_facts import count_processes, total_executions
from libetrace.depend.path_opens import READS, WRITES, PathOpens
from libetrace.image.file import Image

from etrace.query.rows.classes import Classes
from etrace.spec.database import NONE

#: word -> what it means; docs/seeing-a-build.md says the same
MEANINGS = {
    "elapsed": "from the first start to the last end",
    "CPU": "user and system time of all processes",
    "processes": "threads belong to their process",
    "commands": "programs that were run",
    "failed": "commands that ended with a status other than 0; configure tries what may fail",
    "files": "paths that were opened to read or write",
    "linked modules": "programs, libraries and archives that were linked",
    "compilations": "a driver and its stages are one",
}


class Totals(NamedTuple):
    """A build in figures; the words are those of MEANINGS.

    `cpu_ns` is None where the trace has no CPU times, `linked_modules` and `compilations` are None
    before `cas pp`. Of the `files`, `read` were read and `written` written.
    """

    elapsed_ns: int
    cpu_ns: int | None
    processes: int
    commands: int
    failed: int
    files: int
    read: int
    written: int
    opens: int
    linked_modules: int | None
    compilations: int | None


def elapsed_ns(image: Image) -> int:
    """Return the time from the first start to the last end."""
    return total_executions(image, 0).elapsed_ns


def totals(
    image: Image, found: execution_facts.Totals | None = None, uses: bytes | None = None
) -> Totals:
    """Return the figures of a build; `found` and `uses`, when somebody has them already."""
    found, kinds = found or total_executions(image, 0), Classes(image)
    uses = PathOpens(image).uses() if uses is None else uses
    n_both, is_processed = uses.count(READS | WRITES), kinds.are_known
    return Totals(
        elapsed_ns=found.elapsed_ns,
        cpu_ns=None if found.cpu_ns == NONE else found.cpu_ns,
        processes=count_processes(image),
        commands=found.n_commands,
        failed=found.n_failed,
        files=len(uses) - uses.count(0),
        read=uses.count(READS) + n_both,
        written=uses.count(WRITES) + n_both,
        opens=image["opens"].n_rows,
        linked_modules=len(kinds.linked_kind) if is_processed else None,
        compilations=image["compilations"].n_rows if is_processed else None,
    )
