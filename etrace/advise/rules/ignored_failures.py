# SPDX-License-Identifier: Apache-2.0
"""Commands of recipes that failed, while the recipe or its make ended well."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import MAX_EVIDENCE, Build
from etrace.advise.finding import Evidence, Finding, Sure
from etrace.advise.rules.wrappers import INTERPRETERS
from etrace.figures import count
from etrace.query.rows.commands import COPIERS
from etrace.query.rows.labels import MAKES, SHELLS
from etrace.spec.database import NONE

IDS = ("ignored-failures",)
#: failures of these are worth a look; others (grep, test, cmp) answer by their status, and mkdir
#: and rm fail when there is nothing to do
LOUD = (INTERPRETERS - SHELLS) | COPIERS | {b"tar", b"doxygen", b"msgfmt"}


def find(build: Build) -> Iterator[Finding]:
    """Find failures of tools and scripts in jobs of make that nothing passed on."""
    failed = _failed_in_jobs(build)
    rows = [row for row in failed if _is_loud(build, row)]
    if not rows:
        return
    yield Finding(
        IDS[0],
        f"{count(len(rows), 'command')} failed, and the build went on",
        "Their status was other than 0, and the make that ran their recipe ended with 0: a `-`"
        " before the command, `|| true`, or a list of commands of which the last one counts.",
        "Let the recipe fail (set -e, && instead of ;), or do not run what cannot work here.",
        Sure.POSSIBLE,
        "a script may ask whether something works by trying it",
        None,
        tuple(
            Evidence(f"{build.labels.of(row)}  status {failed[row]}", None, row)
            for row in rows[:MAX_EVIDENCE]
        ),
        len(rows),
    )


def _failed_in_jobs(build: Build) -> dict[int, int]:
    """Return last executions of processes that failed without a child that did, and the status.

    Only those below a make that ended with 0 and not below a configure run.
    """
    status = build.executions["status"].tolist()
    good = [False] * len(status)  # below a make that ended well, and not in configure
    has_failed_below = [False] * len(status)
    found: dict[int, int] = {}
    last = build.last_of_process
    for row in build.by_time:
        above = build.above[row]
        good[row] = above != NONE and good[above]
        if build.is_probe(row):
            good[row] = False
        elif build.program(row) in MAKES:
            good[row] = status[last[row]] == 0
    for row in reversed(build.by_time):
        above = build.above[row]
        is_failed = status[row] > 0 and last[row] == row
        if is_failed and good[row] and not has_failed_below[row]:
            found[row] = status[row]
        if above != NONE and (is_failed or has_failed_below[row]):
            has_failed_below[above] = True
    return dict(sorted(found.items(), key=lambda each: build.executions["start_ns"][each[0]]))


def _is_loud(build: Build, row: int) -> bool:
    name = build.program(row)
    if name in LOUD or build.tool_kind(row):
        return True
    binary = build.executions["binary"][row]
    return bool(name) and not build.image.path_string(binary).startswith((b"/usr/", b"/bin/"))
