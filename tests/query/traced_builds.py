# SPDX-License-Identifier: Apache-2.0
"""Questions about dependencies of builds that a trace says, with names of /w alone."""

from __future__ import annotations

import os
from collections.abc import Callable

from builders import O_CREAT, O_TRUNC, O_WRONLY, TraceBuilder
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies

from etrace.query.dependencies import deps, rdeps

SH, A, B, C, D, E, F = (number << 22 | 9 for number in range(1, 8))
NEW = O_WRONLY | O_CREAT | O_TRUNC
Opened = Callable[[TraceBuilder], Dependencies]


def names(dependencies: Dependencies, target: str, rules: Rules = Rules()) -> set[str]:  # noqa: B008
    """Return the dependencies of a target, /w/ left out of their names."""
    found = deps(dependencies, [os.fsencode(target)], rules)
    return {os.fsdecode(path).removeprefix("/w/") for path in found}


def users(dependencies: Dependencies, file: str, rules: Rules = Rules()) -> set[str]:  # noqa: B008
    """Return every file made of a file."""
    rows = rdeps(dependencies, [os.fsencode(file)], rules, all_files=True)
    return shown(dependencies, rows)


def shown(dependencies: Dependencies, rows: list[int]) -> set[str]:
    """Return the paths of rows, /w/ left out."""
    return {os.fsdecode(dependencies.image.path_string(row)).removeprefix("/w/") for row in rows}


def command(
    t: TraceBuilder, upid: int, argv: str, reads: str = "", writes: str = "", *, flags: int = NEW
) -> TraceBuilder:
    """Run a command that reads some files of /w, then writes others."""
    t.fork(SH, upid).exec(upid, f"/bin/{argv.split(maxsplit=1)[0]}", argv.split(), cwd="/w")
    for name in reads.split():
        t.use(upid, f"/w/{name}")
    for name in writes.split():
        t.use(upid, f"/w/{name}", flags=flags)
    return t.exit(upid)


def shell(argv: str = "sh build.sh") -> TraceBuilder:
    """Start the shell that runs the commands."""
    return TraceBuilder("/w").exec(SH, "/bin/sh", argv.split(), cwd="/w")
